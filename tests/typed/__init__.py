"""What arrives of texts of many scripts in the text fields of many toolkits."""
