/** Paints what lies behind the buttons, as large as the field and as dense as the screen. */

import { type RefObject, useRef } from "react";
import type { Camera, Size } from "./camera";
import { type Palette, type Picture, paint } from "./paint";

interface Painter {
  canvas: RefObject<HTMLCanvasElement | null>;
  draw: (camera: Camera, size: Size) => void;
}

export function usePainter(picture: Picture, palette: Palette | null): Painter {
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = (camera: Camera, size: Size) => {
    const element = canvas.current;
    const context = palette && element?.getContext("2d");
    if (!context || !element || !palette) return;
    const density = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * density), Math.round(size.height * density)];
    if (element.width !== width || element.height !== height) Object.assign(element, { width, height });
    paint(context, picture, palette, camera, size, density);
  };
  return { canvas, draw };
}
