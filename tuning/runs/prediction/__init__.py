"""New rows through the models of many customers: rows, their models, columns of answers."""
