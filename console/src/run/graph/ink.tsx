/** The colours of the canvas, read from the style sheets: they change with the theme, and the canvas knows no variables. */

import { type RefObject, useEffect, useRef, useState } from "react";
import { useMedia } from "../../lib/hooks";
import type { Tone } from "../../lib/states";
import { useTheme } from "../../lib/theme";
import type { Palette } from "./paint";

const TONES: readonly Tone[] = ["good", "bad", "busy", "wait", "muted", "warn"];
const OTHERS = ["edge", "lit", "ground", "ring"] as const;

export function Ink({ own }: { own: RefObject<HTMLDivElement | null> }) {
  return (
    <div ref={own} className="graph-ink" hidden>
      {[...TONES, ...OTHERS].map((name) => (
        <span key={name} data-ink={name} />
      ))}
    </div>
  );
}

export function usePalette(): { own: RefObject<HTMLDivElement | null>; palette: Palette | null } {
  const own = useRef<HTMLDivElement>(null);
  const [palette, setPalette] = useState<Palette | null>(null);
  const [theme] = useTheme();
  const isDark = useMedia("(prefers-color-scheme: dark)");
  // biome-ignore lint/correctness/useExhaustiveDependencies: both change what the style sheets say
  useEffect(() => {
    const ink = own.current;
    if (!ink) return;
    const colour = (name: string) => {
      const found = ink.querySelector(`[data-ink="${name}"]`);
      return found ? getComputedStyle(found).color : "#888";
    };
    setPalette({
      edge: colour("edge"),
      lit: colour("lit"),
      ground: colour("ground"),
      ring: colour("ring"),
      tones: Object.fromEntries(TONES.map((tone) => [tone, colour(tone)])) as Palette["tones"],
    });
  }, [theme, isDark]);
  return { own, palette };
}
