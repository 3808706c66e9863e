// What the page uses of d3; `bundle.sh` makes d3.js of it.
export { axisBottom } from "d3-axis";
export { interpolateRgbBasis } from "d3-interpolate";
export { scaleLinear } from "d3-scale";
export { select } from "d3-selection";
export { easeCubicInOut } from "d3-ease";
export { zoom, zoomIdentity } from "d3-zoom";
import "d3-transition";
