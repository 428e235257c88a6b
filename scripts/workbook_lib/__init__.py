"""What scripts/workbook is made of. Python 3.8, standard library only."""
