/**
 * React hooks for the API. Responses are cached, for five seconds by default. A successful change invalidates the whole cache except the
 * names of resources.
 */

import { page } from '@keyward/contract'
import { type Me, me } from '@keyward/contract/management/sign-in'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { z } from 'zod'

import { showDone, showError } from '../notices.tsx'
import { text } from '../text.ts'
import { ApiError, call, queryString } from './client.ts'

export type Filters = Readonly<Record<string, string | number | null | undefined>>

/** Reads one resource, and reads it again every `refreshMs` milliseconds if given. Sends no request while `path` is null. */
export function useRead<Schema extends z.ZodType>(
  path: string | null,
  schema: Schema,
  refreshMs: number | false = false,
): UseQueryResult<z.output<Schema>> {
  return useQuery({
    queryKey: [path],
    queryFn: () => call({ method: 'GET', path: path ?? '' }, schema),
    enabled: path !== null,
    refetchInterval: refreshMs,
  })
}

const REFRESH_MS = 2_000

/**
 * Reads a list page by page. The list is read again every `refresh` milliseconds, or every two seconds while `refresh` returns true for an
 * item of the list.
 */
export function useList<Item extends z.ZodType>(
  path: string,
  item: Item,
  filters: Filters = {},
  refresh?: number | ((item: z.output<Item>) => boolean),
) {
  const schema = useMemo(() => page(item), [item])
  const read = useInfiniteQuery({
    queryKey: [path, filters],
    initialPageParam: '',
    queryFn: ({ pageParam }) =>
      call({ method: 'GET', path: path + queryString({ ...filters, limit: 50, cursor: pageParam }) }, schema),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) => {
      if (typeof refresh !== 'function') return refresh ?? false
      return state.data?.pages.some(({ data }) => data.some(refresh)) === true && REFRESH_MS
    },
  })
  const items = useMemo(() => read.data?.pages.flatMap(({ data }) => data) ?? [], [read.data])
  return {
    items,
    error: read.error,
    isPending: read.isPending,
    hasMore: read.hasNextPage,
    isLoadingMore: read.isFetchingNextPage,
    loadMore: () => void read.fetchNextPage(),
  }
}

/** Reads the signed-in caller. `me` is null when nobody is signed in, and undefined until the first response. */
export function useMe(): { me: Me | null | undefined; error: Error | null } {
  const read = useQuery({
    queryKey: ['/me'],
    queryFn: async (): Promise<Me | null> => {
      try {
        return await call({ method: 'GET', path: '/me' }, me)
      } catch (error) {
        if (error instanceof ApiError && error.problem.status === 401) return null
        throw error
      }
    },
    staleTime: 60_000,
  })
  return { me: read.data, error: read.error }
}

/**
 * Returns a mutation that calls `change`. Success invalidates the cache and shows `done`, with a button that calls `undo` if given, unless
 * `canUndo` returns false. Failure shows the error, unless `quiet` is set.
 */
export function useChange<Input, Output>(
  change: (input: Input) => Promise<Output>,
  options: {
    done?: string | ((output: Output) => string)
    onDone?: (output: Output) => void
    /** Reverts the change. */
    undo?: (output: Output, input: Input) => Promise<unknown>
    canUndo?: (input: Input) => boolean
    quiet?: boolean
  } = {},
) {
  const queries = useQueryClient()
  const { done, onDone, undo, canUndo, quiet } = options
  const refresh = () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'name' })
  return useMutation({
    mutationFn: change,
    onSuccess: async (output, input) => {
      await refresh()
      const revert = async () => {
        await undo?.(output, input)
        await refresh()
        showDone(text.undone)
      }
      const isRevertible = undo !== undefined && canUndo?.(input) !== false
      if (done !== undefined)
        showDone(typeof done === 'string' ? done : done(output), isRevertible ? revert : undefined)
      onDone?.(output)
    },
    onError: (error) => {
      if (quiet !== true) showError(error)
    },
  })
}
