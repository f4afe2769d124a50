/** The fires to come, in the schedule's time, in the user's and in UTC. */

import { useQuery } from "@tanstack/react-query";
import { of } from "../api/cache";
import { answer, api } from "../api/client";
import { inUtc, zone } from "../lib/time";
import { Found, Moment, Sheet } from "../ui/parts";

export function Fires({ job, count, zoneOfJob }: { job: string; count: number; zoneOfJob: string }) {
  const fires = useQuery({
    queryKey: [...of.job(job), "fires", count],
    queryFn: async () =>
      (await answer(api.GET("/jobs/{job}/fires", { params: { path: { job }, query: { count } } }))).items,
  });
  return (
    <Sheet title="Next fires" flush>
      <Found query={fires}>
        {(found) =>
          found.length === 0 ? (
            <p className="inside soft">No fires are to come: it has no schedule, or the schedule has ended.</p>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">In</th>
                    <th scope="col">{zone}</th>
                    {zoneOfJob !== zone && <th scope="col">{zoneOfJob}</th>}
                  </tr>
                </thead>
                <tbody>
                  {found.map((fire) => (
                    <tr key={fire.fireAt}>
                      <td>
                        <Moment at={fire.fireAt} relative />
                      </td>
                      <td>
                        <Moment at={fire.fireAt} />
                        {fire.note && <div className="soft">{fire.note}</div>}
                      </td>
                      {zoneOfJob !== zone && (
                        <td className="number" title={inUtc(fire.fireAt)}>
                          {fire.local.slice(0, 19).replace("T", " ")}
                        </td>
                      )}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Found>
    </Sheet>
  );
}
