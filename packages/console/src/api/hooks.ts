/**
 * React hooks for the API. Responses are cached, for five seconds by default. A successful change invalidates the whole cache except the
 * names of resources.
 */

import { type Me, sessions } from '@keyward/contract/management/sign-in'
import type { AnyInput, InputOf, Operation, ResultOf } from '@keyward/contract/operations'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { z } from 'zod'

import { showDone, showError } from '../notices.tsx'
import { ApiError, type Applied, call, callAndApply } from './client.ts'
import { liveMessage } from './live.ts'

/**
 * Reads one resource, and reads it again every `refreshMs` milliseconds if given, or as long after a response as it returns for the
 * response. Sends no request while `input` is null.
 */
export function useRead<One extends Operation>(
  operation: One,
  input: InputOf<One> | null,
  refreshMs: number | false | ((read: ResultOf<One> | undefined) => number | false) = false,
) {
  return useQuery({
    queryKey: [operation.route, input],
    queryFn: () => call(operation, input!),
    enabled: input !== null,
    refetchInterval: typeof refreshMs === 'function' ? ({ state }) => refreshMs(state.data) : refreshMs,
  })
}

export type ListOperation = Operation & { returns: z.ZodType<{ data: unknown[]; nextCursor: string | null }> }
type PageOf<One extends ListOperation> = z.output<One['returns']>
export type ItemOf<One extends ListOperation> = PageOf<One>['data'][number]

/** The key of the signed-in caller in the cache. */
export const ME = ['me']

const PAGE_SIZE = 50
const REFRESH_MS = 2_000

function readPage<One extends ListOperation>(
  operation: One,
  input: InputOf<One>,
  cursor: string | null,
): Promise<PageOf<One>>
function readPage(operation: ListOperation, input: AnyInput, cursor: string | null): Promise<unknown> {
  return call(operation, { ...input, query: { ...input.query, limit: PAGE_SIZE, cursor } })
}

/**
 * Reads a list page by page. The query of `input` contains the filters, and null is the absence of a filter. The list is read again every
 * `refresh` milliseconds, or every two seconds while `refresh` returns true for an item of the list.
 */
export function useList<One extends ListOperation>(
  operation: One,
  input: InputOf<One>,
  refresh?: number | ((item: ItemOf<One>) => boolean),
) {
  const read = useInfiniteQuery({
    queryKey: [operation.route, input, 'pages'],
    initialPageParam: null,
    queryFn: ({ pageParam }: { pageParam: string | null }) => readPage(operation, input, pageParam),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) => {
      if (typeof refresh !== 'function') return refresh ?? false
      return state.data?.pages.some(({ data }) => data.some(refresh)) === true && REFRESH_MS
    },
  })
  const items = useMemo((): ItemOf<One>[] => read.data?.pages.flatMap(({ data }) => data) ?? [], [read.data])
  return {
    items,
    error: read.error,
    isPending: read.isPending,
    hasMore: read.hasNextPage,
    isLoadingMore: read.isFetchingNextPage,
    loadMore: () => void read.fetchNextPage(),
    retry: () => void read.refetch(),
  }
}

/** Returns a response with all items as a list. */
export function wholeList<Item>(
  { error, isPending, refetch }: { error: Error | null; isPending: boolean; refetch: () => Promise<unknown> },
  items: readonly Item[] = [],
) {
  const rest = { hasMore: false, isLoadingMore: false, loadMore: () => undefined }
  return { ...rest, items, error, isPending, retry: () => void refetch() }
}

/** Reads the signed-in caller. `me` is null when nobody is signed in, and undefined until the first response. */
export function useMe(): { me: Me | null | undefined; error: Error | null; retry: () => void } {
  const read = useQuery({
    queryKey: ME,
    queryFn: async (): Promise<Me | null> => {
      try {
        return await call(sessions.readMe, {})
      } catch (error) {
        if (error instanceof ApiError && error.problem.status === 401) return null
        throw error
      }
    },
    staleTime: 60_000,
  })
  return { me: read.data, error: read.error, retry: () => void read.refetch() }
}

interface ChangeOptions<Input, Output> {
  /** The message after the change. */
  done?: string | ((output: Output) => string)
  onDone?: (output: Output) => void
  /** Reverts the change. The message has a button that calls it, unless `canUndo` returns false. */
  undo?: (output: Output, input: Input) => Promise<unknown>
  canUndo?: (input: Input) => boolean
  /** Whether the caller shows the error. */
  quiet?: boolean
}

interface Changed<Output> {
  result: Output
  applied: Applied | null
}

export function useMutating<Input, Output>(
  run: (input: Input) => Promise<Changed<Output>>,
  { done, onDone, undo, canUndo, quiet }: ChangeOptions<Input, Output>,
) {
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'name' })
  return useMutation({
    mutationFn: async (input: Input): Promise<Output> => {
      const { result, applied } = await run(input)
      await refresh()
      const revert = async () => {
        await undo?.(result, input)
        await refresh()
        showDone('Undone.')
      }
      const isRevertible = undo !== undefined && canUndo?.(input) !== false
      if (done !== undefined)
        showDone(
          liveMessage(typeof done === 'string' ? done : done(result), applied),
          isRevertible ? revert : undefined,
        )
      onDone?.(result)
      return result
    },
    onError: (error) => {
      if (quiet !== true) showError(error)
    },
  })
}

/**
 * Returns a mutation that calls the operation. Success invalidates the cache. The message states how many validators have applied the
 * change, if the operation propagates.
 */
export function useCall<One extends Operation>(
  operation: One,
  options: ChangeOptions<InputOf<One>, ResultOf<One>> = {},
) {
  return useMutating((input: InputOf<One>) => callAndApply(operation, input), options)
}

/** Returns a mutation that calls `change`, which chooses the operation or calls several. Success invalidates the cache. */
export function useChange<Input, Output>(
  change: (input: Input) => Promise<Output>,
  options: ChangeOptions<Input, Output> = {},
) {
  return useMutating(async (input: Input) => ({ result: await change(input), applied: null }), options)
}
