/**
 * Charts as data. Scenarios define them, the report draws them. Result files contain them, so the report can be drawn
 * again without measuring again.
 */

import { z } from 'zod'

const bars = z.object({
  kind: z.literal('bars'),
  title: z.string(),
  unit: z.string(),
  /** True for values that span powers of ten. */
  log: z.boolean().default(false),
  bars: z.array(
    z.object({
      label: z.string(),
      value: z.number(),
      low: z.number().optional(),
      high: z.number().optional(),
      ours: z.boolean(),
    }),
  ),
})

/** One dot per round, which shows the spread. */
const dots = z.object({
  kind: z.literal('dots'),
  title: z.string(),
  unit: z.string(),
  rows: z.array(
    z.object({
      label: z.string(),
      values: z.array(z.number()),
      goal: z.number().nullable(),
      direction: z.enum(['at least', 'at most']),
    }),
  ),
})

const lines = z.object({
  kind: z.literal('lines'),
  title: z.string(),
  x: z.object({
    label: z.string(),
    log: z.boolean(),
    ticks: z.array(z.object({ at: z.number(), text: z.string() })).optional(),
  }),
  y: z.object({ label: z.string(), log: z.boolean() }),
  series: z.array(
    z.object({ label: z.string(), ours: z.boolean(), points: z.array(z.tuple([z.number(), z.number()])) }),
  ),
})

export const chart = z.discriminatedUnion('kind', [bars, dots, lines])
export type Chart = z.infer<typeof chart>
export type BarChart = z.infer<typeof bars>
export type DotChart = z.infer<typeof dots>
export type LineChart = z.infer<typeof lines>
