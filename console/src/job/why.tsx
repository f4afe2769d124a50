/** What keeps a job from running, as the same guards say that decide it. */

import { useQuery } from "@tanstack/react-query";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { Notice } from "../ui/parts";

export function WhyNot({ job }: { job: string }) {
  const why = useQuery({
    queryKey: [...of.job(job), "why"],
    queryFn: () => answer(api.GET("/jobs/{job}/why", { params: { path: { job } } })),
  });
  if (!why.data || why.data.blockers.length === 0) return null;
  return (
    <Notice tone="warn">
      <strong>{why.data.summary}</strong>
      <ul className="stack">
        {why.data.blockers.map((one) => (
          <li key={`${one.code}${one.detail}`}>
            {one.detail} {one.remedy && <span className="soft">{one.remedy}</span>}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
