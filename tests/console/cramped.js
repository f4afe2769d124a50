// Boxes that overflow, leave the page or overlap: a sentence each.
() => {
  const found = [];
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    // What is folded has a size, too.
    return element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && box.width > 1 && box.height > 1;
  };
  const words = (element) => `${element.tagName.toLowerCase()} "${(element.textContent || '').trim().slice(0, 40)}"`;
  const scrolls = (element) => {
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (/(auto|scroll|hidden|clip)/.test(style.overflowX + style.overflowY)) return true;
    }
    return false;
  };
  // What scrolls or is cut off is only where it can be seen.
  const shown = (element) => {
    let { left, top, right, bottom } = element.getBoundingClientRect();
    for (let one = element.parentElement; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (!/(auto|scroll|hidden|clip)/.test(style.overflowX + style.overflowY)) continue;
      const box = one.getBoundingClientRect();
      left = Math.max(left, box.left);
      right = Math.min(right, box.right);
      top = Math.max(top, box.top);
      bottom = Math.min(bottom, box.bottom);
    }
    return { left, top, right, bottom };
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const controls = [...document.querySelectorAll('button, a, input, select, textarea, h1, h2, label, .pill, .tag')]
    .filter((one) => seen(one) && !one.closest('.visually-hidden, .skip, svg, dialog:not([open])'));
  for (const one of controls) {
    const box = one.getBoundingClientRect();
    if (!scrolls(one) && (box.right > width + 1 || box.left < -1)) found.push(`${words(one)} leaves the page`);
    if (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'visible' && one.clientWidth > 0
        && getComputedStyle(one).display !== 'inline') found.push(`${words(one)} overflows its box`);
  }
  const roots = document.querySelector('dialog[open]') ? [...document.querySelectorAll('dialog[open] *')] : null;
  const leaves = controls.filter((one) => !roots || roots.includes(one));
  for (let i = 0; i < leaves.length; i++) {
    const a = shown(leaves[i]);
    for (let j = i + 1; j < Math.min(leaves.length, i + 60); j++) {
      if (leaves[i].contains(leaves[j]) || leaves[j].contains(leaves[i])) continue;
      const b = shown(leaves[j]);
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 2 && y > 2) {
        const middle = document.elementFromPoint((Math.max(a.left, b.left) + Math.min(a.right, b.right)) / 2,
          (Math.max(a.top, b.top) + Math.min(a.bottom, b.bottom)) / 2);
        // What is scrolled out of sight covers nothing, and what floats above the page is meant to.
        if (middle && !middle.closest('.toasts, .top, .side, .menu-list, .editor-foot, .dialog-foot')
            && (leaves[i].contains(middle) || leaves[j].contains(middle)))
          found.push(`${words(leaves[i])} overlaps ${words(leaves[j])}`);
      }
    }
  }
  return found;
}
