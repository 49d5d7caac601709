/** Imports licenses from CSV. Finds each customer by e-mail address, or creates the customer. */

import { licenses } from '@keyward/contract'
import { products as allProducts } from '@keyward/contract/management/products'
import { Button, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { ApiError, callAndApply } from '../../api/client.ts'
import { useList } from '../../api/hooks.ts'
import { useLatest } from '../../api/latest.ts'
import { liveMessage } from '../../api/live.ts'
import { sendRows } from '../../api/rejected-rows.ts'
import { save } from '../../api/save.ts'
import { type Report, useStart } from '../../api/work.ts'
import { customerWith } from '../../parts/choose.tsx'
import { ImportEnd, ImportScreen } from '../../parts/import-screen.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { counted } from '../../text.ts'
import { EXAMPLE, type LicenseRow, readLicenseRows, type ReadLicenses } from './rows.ts'

const PATH = '/licenses/import'
const BATCH = 200
const NOTHING: ReadLicenses = { rows: [], bad: [] }

/** The e-mail address and the key of each license that the last import created, kept for the download. */
let createdKeys: string[] = []

interface ReadyRow {
  where: string
  email: string
  body: LicenseRow['body']
}

/** Imports the rows in batches. The last batch waits until the validators have applied the whole import. */
async function importAll({ rows, bad: unread }: ReadLicenses, report: Report): Promise<void> {
  createdKeys = []
  const bad = [...unread]
  const customers = new Map<string, string>()
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const ready: ReadyRow[] = []
    for (const [index, row] of batch.entries()) {
      const email = row.email.toLowerCase()
      try {
        const customerId = customers.get(email) ?? (await customerWith(row.email, row.name))
        customers.set(email, customerId)
        ready.push({ where: row.where, email: row.email, body: { ...row.body, customerId } })
      } catch (error) {
        if (!(error instanceof ApiError) || error.problem.status !== 422) throw error
        bad.push({ where: row.where, detail: `email: ${error.problem.errors?.[0]?.detail ?? error.message}` })
      }
      report({ done: at + index })
    }
    const waits = at + BATCH >= rows.length
    const imported = await sendRows('licenses', ready, async (some) => {
      const body = { licenses: some.map((one) => one.body) }
      return { some, ...(await callAndApply(licenses.importLicenses, { body }, { waits })) }
    })
    bad.push(...imported.bad)
    for (const [index, { key }] of imported.result?.result.licenses.entries() ?? [])
      createdKeys.push(`"${imported.result?.some[index]?.email ?? ''}","${key.replaceAll('"', '""')}"`)
    const summary = liveMessage(`Created ${counted(createdKeys.length, 'license')}.`, imported.result?.applied ?? null)
    report({ done: at + batch.length, bad: [...bad], summary })
  }
}

function Form() {
  const [content, setContent] = useState('')
  const products = useList(allProducts.listProducts, {})
  const { items, hasMore, isLoadingMore, loadMore } = products
  // A row can name any product, so all pages of the list of products are read.
  useEffect(() => {
    if (hasMore && !isLoadingMore) loadMore()
  }, [hasMore, isLoadingMore, loadMore])
  const read = useLatest(() => readLicenseRows(content, items), NOTHING, [content, items])
  const customers = new Set(read.rows.map(({ email }) => email.toLowerCase())).size
  const start = useStart()
  const work = { title: 'Import of licenses', path: PATH, all: read.rows.length }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField
        label="CSV"
        description="Paste CSV with a heading line, or choose a file. Required columns: product, email."
        value={content}
        onChange={setContent}
      />
      <Stack>
        <Text size="sm" c="dimmed">
          Columns: product (name or id), templateId, externalId, email, name, key, type, expiresAt, durationDays,
          maxMachines, leaseSeconds, maxReleases, graceDays, fileDays. Other columns become metadata.
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
          {read.rows.length > 0 && (
            <Text size="sm" c="dimmed">
              For {counted(customers, 'customer')}. A customer is created for each e-mail address that none has.
            </Text>
          )}
        </div>
        <ImportEnd
          label={`Import ${counted(read.rows.length, 'license')}`}
          rows={read.rows.length}
          bad={read.bad}
          onStart={() => start(work, (report) => importAll(read, report))}
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
        <Button variant="default" onClick={() => save('license-keys.csv', `email,key\n${createdKeys.join('\n')}\n`)}>
          Download the keys
        </Button>
      )}
    </>
  )
}

export default function ImportLicenses() {
  return <ImportScreen title="Import licenses" path={PATH} form={<Form />} actions={<Actions />} />
}
