/**
 * Defines charts as data. Scenarios create them and result files contain them, so that the report can be drawn from the
 * files.
 */

import { z } from 'zod'

const bars = z.object({
  kind: z.literal('bars'),
  title: z.string(),
  unit: z.string(),
  /** Whether the scale is logarithmic. */
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

/** A chart with one dot per round, which shows the spread. */
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
