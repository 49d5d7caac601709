/** Calls operations of the contract, and React hooks for them. A change that validators apply waits for them. */

import {
  type InputOf,
  methodOf,
  type Operation,
  type QueryOf,
  type ResultOf,
  urlOf,
  type AnyInput,
} from '@keyward/contract/operations'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { z } from 'zod'

import { showDone, showError } from '../notices.tsx'
import { text } from '../text.ts'
import { type Applied, appliedBy, parse, request } from './client.ts'

/** Sends a request and returns its parsed response. Throws ApiError and UnreachableError. */
export async function callAndApply<One extends Operation>(
  operation: One,
  input: InputOf<One>,
): Promise<{ result: ResultOf<One>; applied: Applied | null }>
export async function callAndApply(
  operation: Operation,
  input: AnyInput,
): Promise<{ result: unknown; applied: Applied | null }> {
  const { body } = input
  const sent = { method: methodOf(operation), path: urlOf(operation, input), waits: operation.propagates === true }
  const response = await request({ ...sent, ...(body !== undefined && { body }) })
  const { returns, file } = operation
  const result = file !== undefined ? await response.text() : returns && (await parse(response, returns))
  return { result, applied: appliedBy(response) }
}

export async function call<One extends Operation>(operation: One, input: InputOf<One>): Promise<ResultOf<One>> {
  return (await callAndApply(operation, input)).result
}

/** Reads one resource. Sends no request while `input` is null. */
export function useRead<One extends Operation>(
  operation: One,
  input: InputOf<One> | null,
  refreshMs: number | false = false,
) {
  return useQuery({
    queryKey: [operation.route, input],
    queryFn: () => call(operation, input!),
    enabled: input !== null,
    refetchInterval: refreshMs,
  })
}

type ListOperation = Operation & { returns: z.ZodType<{ data: unknown[]; nextCursor: string | null }> }
export type ItemOf<One extends ListOperation> = z.output<One['returns']>['data'][number]
/** The filters of a list. Their names are checked, and the service checks their values, which come from the address of the page. */
type FiltersOf<One extends ListOperation> = Partial<Record<keyof z.input<QueryOf<One>>, string | number | null>>

const REFRESH_MS = 2_000

/** Reads a list page by page. */
export function useList<One extends ListOperation>(
  operation: One,
  filters: FiltersOf<One> = {},
  refresh?: number | ((item: ItemOf<One>) => boolean),
) {
  const read = useInfiniteQuery({
    queryKey: [operation.route, filters],
    initialPageParam: '',
    queryFn: async ({ pageParam }): Promise<z.output<One['returns']>> => {
      const path = urlOf(operation, { query: { ...filters, limit: 50, cursor: pageParam } })
      return parse<One['returns']>(await request({ method: 'GET', path }), operation.returns)
    },
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
  }
}

/** Returns a mutation that calls the operation with the input that `mutate` receives. */
export function useChange<One extends Operation>(
  operation: One,
  options: {
    done?: string | ((output: ResultOf<One>) => string)
    onDone?: (output: ResultOf<One>) => void
    /** Reverts the change. */
    undo?: (output: ResultOf<One>, input: InputOf<One>) => Promise<unknown>
    quiet?: boolean
  } = {},
) {
  const queries = useQueryClient()
  const { done, onDone, undo, quiet } = options
  const refresh = () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'name' })
  return useMutation({
    mutationFn: (input: InputOf<One>) => call(operation, input),
    onSuccess: async (output, input) => {
      await refresh()
      const revert = async () => {
        await undo?.(output, input)
        await refresh()
        showDone(text.undone)
      }
      if (done !== undefined) showDone(typeof done === 'string' ? done : done(output), undo && revert)
      onDone?.(output)
    },
    onError: (error) => {
      if (quiet !== true) showError(error)
    },
  })
}
