/** Imports licenses from CSV or JSON. The service finds the customer of each row, or creates it. */

import { licenses } from '@keyward/contract'
import { products as allProducts } from '@keyward/contract/management/products'
import { writeCell } from '@keyward/contract/text'
import { Button, Checkbox, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { callAndApply } from '../../api/client.ts'
import { useList } from '../../api/hooks.ts'
import { useLatest } from '../../api/latest.ts'
import { liveMessage } from '../../api/live.ts'
import { useMay } from '../../api/me.ts'
import { sendRows } from '../../api/rejected-rows.ts'
import { save } from '../../api/save.ts'
import { type Report, useStart } from '../../api/work.ts'
import { ImportEnd, ImportScreen } from '../../parts/import-screen.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { counted } from '../../text.ts'
import { EXAMPLE, readLicenseRows, type ReadLicenses } from './rows.ts'

const PATH = '/licenses/import'
const BATCH = 200
const NOTHING: ReadLicenses = { rows: [], bad: [] }

/** The e-mail address and the key of each license that the last import created, kept for the download. */
let createdKeys: string[] = []

/** Imports the rows in batches. The last batch waits until the validators have applied the whole import. */
async function importAll({ rows, bad: unread }: ReadLicenses, createCustomers: boolean, report: Report): Promise<void> {
  createdKeys = []
  let skipped = 0
  const bad = [...unread]
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const waits = at + BATCH >= rows.length
    const imported = await sendRows('licenses', batch, async (some) => {
      const body = { licenses: some.map((one) => one.body), createCustomers, skipExisting: true }
      return { some, ...(await callAndApply(licenses.importLicenses, { body }, { waits })) }
    })
    bad.push(...imported.bad)
    skipped += imported.result?.result.skipped ?? 0
    for (const { key, pointer } of imported.result?.result.licenses ?? []) {
      const row = imported.result?.some[Number(pointer.split('/')[2])]?.body
      createdKeys.push([row?.customer?.email ?? row?.customerId ?? '', key].map(cellOf).join(','))
    }
    const created = `Created ${counted(createdKeys.length, 'license')}${skipped > 0 ? `, ${skipped} existed` : ''}.`
    report({
      done: at + batch.length,
      bad: [...bad],
      summary: liveMessage(created, imported.result?.applied ?? null),
    })
  }
}

const cellOf = (cell: string): string => `"${writeCell(cell).replaceAll('"', '""')}"`

function Form() {
  const may = useMay()
  const [content, setContent] = useState('')
  const products = useList(allProducts.listProducts, {})
  const { items, hasMore, isLoadingMore, loadMore } = products
  // A row can name any product, so all pages of the list of products are read.
  useEffect(() => {
    if (hasMore && !isLoadingMore) loadMore()
  }, [hasMore, isLoadingMore, loadMore])
  const read = useLatest(() => readLicenseRows(content, items), NOTHING, [content, items])
  const [createCustomers, setCreateCustomers] = useState(may('customers.write'))
  const start = useStart()
  const work = { title: 'Import of licenses', path: PATH, all: read.rows.length }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField
        label="CSV or JSON"
        description="Paste CSV with a heading line, or JSON, or choose a file. A row needs a product and a customer."
        value={content}
        onChange={setContent}
      />
      <Stack>
        <Text size="sm" c="dimmed">
          Columns: product (name or id), templateId, externalId, email, customerExternalId, name, key, status, machines
          (one id in each line of the cell), type, expiresAt, durationDays, maxMachines, leaseSeconds, maxReleases,
          graceDays, fileDays, entitlements, metadata. Without a cell of metadata, other columns become metadata. The
          cell null replaces a value of the template by none; for graceDays, use 0. A row whose key or external id a
          license has is skipped, so you can import a file again.
        </Text>
        <Group>
          <Button size="xs" variant="default" onClick={() => setContent(EXAMPLE(items[0]?.name ?? 'Product'))}>
            Insert an example
          </Button>
        </Group>
        <div role="status">
          <Text fw={600}>
            {content.trim() === ''
              ? 'Paste a table to see what will be imported.'
              : `${counted(read.rows.length, 'license')} to import`}
          </Text>
        </div>
        <Checkbox
          label="Create customers that do not exist"
          checked={createCustomers}
          disabled={!may('customers.write')}
          onChange={(event) => setCreateCustomers(event.currentTarget.checked)}
        />
        <ImportEnd
          label={`Import ${counted(read.rows.length, 'license')}`}
          rows={read.rows.length}
          bad={read.bad}
          onStart={() => start(work, (report) => importAll(read, createCustomers, report))}
          back="/licenses"
        />
      </Stack>
    </SimpleGrid>
  )
}

/** The buttons below the result. The created keys can be downloaded until the next import. */
function Actions() {
  return (
    <>
      <Button component={Link} href="/licenses">
        Open the licenses
      </Button>
      {createdKeys.length > 0 && (
        <Button variant="default" onClick={() => save('license-keys.csv', `customer,key\n${createdKeys.join('\n')}\n`)}>
          Download the keys
        </Button>
      )}
    </>
  )
}

export default function ImportLicenses() {
  return <ImportScreen title="Import licenses" path={PATH} form={<Form />} actions={<Actions />} />
}
