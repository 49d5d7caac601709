import { analytics } from '@keyward/contract/management/analytics'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../../command.ts'
import { table } from '../../output.ts'
import { parsePast } from '../../times.ts'

const flagsOf = z.object({
  since: z.string(),
  interval: z.enum(['hour', 'day']),
  product: z.string().optional(),
  by: z.enum(['code', 'product']).optional(),
})
const BAR_LENGTH = 40

export function addUsageCommand(parent: CliCommand): void {
  parent
    .command('usage')
    .description('show counts of checks; excluded checks are not counted')
    .option('--since <when>', 'the start: a date, or 12h, 30d, 2w before now', '7d')
    .addOption(new Option('--interval <interval>', 'the width of a row').choices(['hour', 'day']).default('day'))
    .addOption(new Option('--by <what>', 'split each row by code or product').choices(['code', 'product']))
    .option('--product <id>', 'only checks of this product')
    .run(async ({ api, output, context }, flags) => {
      const { since, interval, product, by } = flagsOf.parse(flags)
      const query = { from: parsePast(since, context.nowMs()), interval, productId: product, groupBy: by }
      const { data } = await api.call(analytics.countChecks, { query })
      const most = Math.max(1, ...data.data.map(({ count }) => count))
      const rows = data.data.map(({ start, code, productId, count }) => [
        interval === 'day' ? start.slice(0, 10) : `${start.slice(0, 16)}Z`,
        ...(by === undefined ? [] : [code ?? productId ?? 'unknown key']),
        String(count),
        '█'.repeat(Math.ceil((count / most) * BAR_LENGTH)),
      ])
      output.result(data, table(['START', ...(by === undefined ? [] : [by.toUpperCase()]), 'CHECKS', ''], rows))
    })
}
