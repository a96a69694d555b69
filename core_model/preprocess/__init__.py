"""Files a person has - a picture, a sound - as the numbers a model reads, by its own settings. No torch here."""
