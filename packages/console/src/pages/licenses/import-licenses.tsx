/** Imports licenses from CSV. Finds each customer by e-mail address, or creates the customer. */

import { licenses } from '@keyward/contract'
import { type Product, products as allProducts } from '@keyward/contract/management/products'
import { Button, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'

import { ApiError, type Applied, callAndApply } from '../../api/client.ts'
import { useList } from '../../api/hooks.ts'
import { liveMessage } from '../../api/live.ts'
import { rejectedRows } from '../../api/rejected-rows.ts'
import { save } from '../../api/save.ts'
import { type BadRow, type Report, startWork } from '../../api/work.ts'
import { customerWith } from '../../parts/choose.tsx'
import { ImportEnd, ImportScreen } from '../../parts/import-screen.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { text } from '../../text.ts'
import { EXAMPLE, type LicenseRow, readLicenseRows, type ReadLicenses } from './rows.ts'

const t = text.licenseImport
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

interface Imported {
  keys: string[]
  bad: BadRow[]
  applied: Applied | null
}

/**
 * Imports a batch without the rows that the API rejects, which are returned in `bad`. The last batch waits until the validators have
 * applied the whole import.
 */
async function importBatch(ready: readonly ReadyRow[], isLast: boolean): Promise<Imported> {
  if (ready.length === 0) return { keys: [], bad: [], applied: null }
  try {
    const body = { licenses: ready.map((one) => one.body) }
    const { result, applied } = await callAndApply(licenses.importLicenses, { body }, { waits: isLast })
    const keys = result.licenses.map(
      ({ key }, index) => `"${ready[index]?.email ?? ''}","${key.replaceAll('"', '""')}"`,
    )
    return { keys, bad: [], applied }
  } catch (error) {
    const rejected = rejectedRows(error, 'licenses', ready)
    if (rejected === null) throw error
    const others = await importBatch(rejected.rest, isLast)
    return { ...others, bad: [...rejected.bad, ...others.bad] }
  }
}

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
    const imported = await importBatch(ready, at + BATCH >= rows.length)
    createdKeys.push(...imported.keys)
    bad.push(...imported.bad)
    const summary = liveMessage(t.result(createdKeys.length), imported.applied)
    report({ done: at + batch.length, bad: [...bad], summary })
  }
}

/** Returns the rows of the text, and reads them again when an argument changes. */
function useRows(content: string, products: readonly Product[]): ReadLicenses {
  const [read, setRead] = useState(NOTHING)
  useEffect(() => {
    let isCurrent = true
    void readLicenseRows(content, products).then((rows) => isCurrent && setRead(rows))
    return () => {
      isCurrent = false
    }
  }, [content, products])
  return read
}

function Form() {
  const queries = useQueryClient()
  const [content, setContent] = useState('')
  const products = useList(allProducts.listProducts, {})
  const { items, hasMore, isLoadingMore, loadMore } = products
  // A row can name any product, so all pages of the list of products are read.
  useEffect(() => {
    if (hasMore && !isLoadingMore) loadMore()
  }, [hasMore, isLoadingMore, loadMore])
  const read = useRows(content, items)
  const customers = new Set(read.rows.map(({ email }) => email.toLowerCase())).size
  const start = () => {
    void startWork({ title: t.working, path: PATH, all: read.rows.length }, (report) => importAll(read, report)).then(
      () => queries.invalidateQueries(),
    )
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField label={t.values} description={t.intro} value={content} onChange={setContent} />
      <Stack>
        <Text size="sm" c="dimmed">
          {t.columns}
        </Text>
        <Group>
          <Button size="xs" variant="default" onClick={() => setContent(EXAMPLE(items[0]?.name ?? 'Product'))}>
            {t.example}
          </Button>
        </Group>
        <div role="status">
          <Text fw={600}>{content.trim() === '' ? t.nothing : t.ready(read.rows.length)}</Text>
          {read.rows.length > 0 && (
            <Text size="sm" c="dimmed">
              {t.customers(customers)}
            </Text>
          )}
        </div>
        <ImportEnd
          label={t.import(read.rows.length)}
          rows={read.rows.length}
          bad={read.bad}
          onStart={start}
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
        {t.toLicenses}
      </Button>
      {createdKeys.length > 0 && (
        <Button variant="default" onClick={() => save('license-keys.csv', `email,key\n${createdKeys.join('\n')}\n`)}>
          {t.keys}
        </Button>
      )}
    </>
  )
}

export default function ImportLicenses() {
  return <ImportScreen title={t.title} path={PATH} form={<Form />} actions={<Actions />} />
}
