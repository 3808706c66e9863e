"""Pictures, a file for each; drawing functions import matplotlib, since the rest of the
package works without."""
