"""What is done with text because of where it came from: instructions marked and fenced, secrets redacted, recalled
text known again."""
