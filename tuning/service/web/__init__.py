"""What is answered over HTTP: the API, the page, and who may ask."""
