"""Files of new rows, predicted in one pass by the models of many customers."""
