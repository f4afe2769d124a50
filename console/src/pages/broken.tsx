/** A page that fails says so, and leaves the rest usable; going elsewhere begins anew. */

import { Component, type ReactNode } from "react";
import { useLocation } from "wouter";
import { Button, Empty } from "../ui/parts";

export function Broken({ children }: { children: ReactNode }) {
  const [path] = useLocation();
  return <Boundary key={path}>{children}</Boundary>;
}

class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <Empty title="This page does not work">
        <p>{this.state.error instanceof Error ? this.state.error.message : "Something is wrong in the console."}</p>
        <p>The scheduler is not touched by it.</p>
        <Button onClick={() => location.reload()}>Load it again</Button>
      </Empty>
    );
  }
}
