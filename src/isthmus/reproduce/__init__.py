"""The papers' tables and figures, made anew from the algorithms' own definitions."""
