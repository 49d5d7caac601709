import { jobFilter } from '@keyward/contract/management/license-jobs'
import type { z } from 'zod'

import { checkInput } from '../../api/input.ts'

/** The licenses of a job. */
export type Target = { ids: string[] } | { filter: z.input<typeof jobFilter> } | { all: true }

/** Returns the selection of all licenses that match the filters of the list, or null if a job cannot select them. */
export function targetOf(filters: Readonly<Record<string, string | null>>): Target | null {
  const filter: unknown = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== null))
  if (Object.values(filters).every((value) => value === null)) return { all: true }
  try {
    checkInput(jobFilter, filter)
    return { filter }
  } catch {
    return null
  }
}
