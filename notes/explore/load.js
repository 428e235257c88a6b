// Loads the page's style and its scripts, in this order, from the folder of this file: a page needs one line.
(function () {
  "use strict";
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = here + "style.css";
  document.head.append(style);
  for (const name of ["devices", "model", "state", "chart", "page"]) {
    const script = document.createElement("script");
    script.src = `${here}${name}.js`;
    script.async = false;  // keeps the order
    document.head.append(script);
  }
})();
