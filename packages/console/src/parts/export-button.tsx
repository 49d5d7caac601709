/** Saves all items that match the filters of a list as a CSV file. */

import type { InputOf, Operation } from '@keyward/contract/operations'
import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'

import { hrefOf } from '../api/client.ts'

/** A link, so that the browser writes the file while it receives it, and shows when it is incomplete. */
export function ExportButton<One extends Operation>({ operation, input }: { operation: One; input: InputOf<One> }) {
  return (
    <Button
      component="a"
      href={hrefOf(operation, input)}
      download
      variant="default"
      leftSection={<IconDownload size={16} />}
    >
      Export CSV
    </Button>
  )
}
