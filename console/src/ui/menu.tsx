/** A button that opens a few more things to do. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./icons";
import { Button } from "./parts";

export interface MenuItem {
  label: string;
  icon?: IconName;
  danger?: boolean;
  run: () => void;
}

export function Menu({
  label,
  icon = "more",
  items,
  children,
}: {
  label: string;
  icon?: IconName;
  items: readonly MenuItem[];
  children?: ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    if (own.current) unfold(own.current);
    own.current?.querySelector<HTMLElement>(".menu-list button")?.focus();
    const close = () => setOpen(false);
    const outside = (event: MouseEvent) => {
      if (!own.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("mousedown", outside);
    window.addEventListener("scroll", close, true);
    window.addEventListener("resize", close);
    return () => {
      document.removeEventListener("mousedown", outside);
      window.removeEventListener("scroll", close, true);
      window.removeEventListener("resize", close);
    };
  }, [open]);
  const pressed = (event: React.KeyboardEvent) => {
    const buttons = [...(own.current?.querySelectorAll<HTMLElement>(".menu-list button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      setOpen(false);
      own.current?.querySelector<HTMLElement>(":scope > .button")?.focus();
    } else if (step && buttons.length) {
      event.preventDefault();
      buttons[(at + step + buttons.length) % buttons.length]?.focus();
    }
  };
  if (items.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only hears keys that its buttons do not take
    <div className="menu" ref={own} onKeyDown={open ? pressed : undefined}>
      <Button
        icon={icon}
        aria-label={children ? undefined : label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {children}
      </Button>
      {open && (
        <div className="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              className={item.danger ? "danger" : undefined}
              onClick={() => {
                setOpen(false);
                item.run();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** As a popover the list stands above whatever scrolls or cuts around it: below its button, or above where room ends. */
function unfold(menu: HTMLElement): void {
  const list = menu.querySelector<HTMLElement>(".menu-list");
  if (!list?.showPopover) return;
  list.popover = "manual";
  list.showPopover();
  const button = menu.getBoundingClientRect();
  const { width, height } = list.getBoundingClientRect();
  const below = button.bottom + 4;
  list.style.top = `${below + height <= window.innerHeight ? below : Math.max(4, button.top - height - 4)}px`;
  list.style.left = `${Math.max(4, Math.min(button.right, window.innerWidth - 4) - width)}px`;
}
