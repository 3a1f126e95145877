// For those who use keys or a screen reader: names for what the theme leaves without one, and wide
// tables that arrow keys can scroll.
function name(selector, words) {
  document.querySelectorAll(selector).forEach((one, index) => {
    one.setAttribute("aria-label", index ? `${words} ${index + 1}` : words);
  });
}

function nameAndReach() {
  name(".md-search[role=dialog]", "Search");
  name(".md-code__nav", "Commands of a block of code");
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table) => {
    if (table.scrollWidth > table.clientWidth) {
      table.tabIndex = 0;
    } else {
      table.removeAttribute("tabindex");
    }
  });
}

new MutationObserver(nameAndReach).observe(document.body, {childList: true, subtree: true});
addEventListener("resize", nameAndReach);
nameAndReach();
