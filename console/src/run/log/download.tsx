/** The whole log as a file. */

import { useEffect, useRef, useState } from "react";
import { offerFile } from "../../lib/download";
import { Button } from "../../ui/parts";
import { sayWrong } from "../../ui/toasts";
import { type Asked, wholeLog } from "./follower";

export function Download({ asked }: { asked: Asked }) {
  const [lines, setLines] = useState<number | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const download = async () => {
    stop.current = new AbortController();
    setLines(0);
    try {
      const text = await wholeLog(asked, setLines, stop.current.signal);
      const parts = [asked.job, asked.run, asked.task, asked.attempt].filter(Boolean);
      offerFile(`${parts.join("-").replace(/[[\]]/g, "_")}.log`, text, "text/plain;charset=utf-8");
    } catch (error) {
      if (!stop.current.signal.aborted) sayWrong(error);
    }
    setLines(null);
  };
  return (
    <Button small icon="download" busy={lines !== null} onClick={() => void download()}>
      {lines ? `${lines.toLocaleString()} lines` : "Download"}
    </Button>
  );
}
