/** Saves the items that match the filters of a list as a CSV file. */

import type { InputOf } from '@keyward/contract/operations'
import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'

import { type ItemOf, type ListOperation, readAll, useChange } from '../api/hooks.ts'
import { save } from '../api/save.ts'
import { counted } from '../text.ts'
import { type Cell, toCsv } from './csv.ts'

export function ExportButton<One extends ListOperation>({
  operation,
  input,
  file,
  row,
}: {
  operation: One
  input: InputOf<One>
  /** The name of the file, without its ending. */
  file: string
  row: (item: ItemOf<One>) => Readonly<Record<string, Cell>>
}) {
  const run = useChange(
    async () => {
      const { items, isWhole } = await readAll(operation, input)
      save(`${file}.csv`, toCsv(items.map(row)))
      return { count: items.length, isWhole }
    },
    {
      done: ({ count, isWhole }) =>
        isWhole
          ? `Saved ${counted(count, 'row')}.`
          : `Saved the first ${count.toLocaleString()} rows. Filter the list for the rest.`,
    },
  )
  return (
    <Button
      variant="default"
      leftSection={<IconDownload size={16} />}
      onClick={() => run.mutate(undefined)}
      loading={run.isPending}
    >
      Export CSV
    </Button>
  )
}
