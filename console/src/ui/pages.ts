/** Lists that the server cuts into pages, as one. */

import { useInfiniteQuery } from "@tanstack/react-query";

interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

export function usePages<T>(
  queryKey: readonly unknown[],
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
  refetchInterval: number | false = false,
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => fetchPage(pageParam ?? undefined),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval,
  });
  return {
    query,
    items: query.data?.pages.flatMap((page) => page.items) ?? [],
    more: query.hasNextPage && !query.isFetchingNextPage,
    fetchMore: () => void query.fetchNextPage(),
  };
}
