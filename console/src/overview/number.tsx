/** One figure, what it is of, and where to see more of it. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Tone } from "../lib/states";

interface NumberProps {
  label: string;
  value: ReactNode;
  below?: ReactNode;
  href?: string;
  tone?: Tone;
}

export function Figure({ label, value, below, href, tone }: NumberProps) {
  return (
    <div className="sheet figure" data-tone={tone}>
      <span className="soft">{href ? <Link href={href}>{label}</Link> : label}</span>
      <strong className="number">{value}</strong>
      {below && <span className="faint">{below}</span>}
    </div>
  );
}
