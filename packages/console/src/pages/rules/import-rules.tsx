/** Imports access rules from text or a file. Shows a preview, the progress, and the invalid rows. */

import { accessRules } from '@keyward/contract'
import { Button, SimpleGrid, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'

import { type Applied, callAndApply } from '../../api/client.ts'
import { useLatest } from '../../api/latest.ts'
import { liveMessage } from '../../api/live.ts'
import { sendRows } from '../../api/rejected-rows.ts'
import { type BadRow, type Report, useStart } from '../../api/work.ts'
import { ExpiryField, type Expiry, NEVER, timeOf } from '../../parts/expiry-field.tsx'
import { ImportEnd, ImportScreen } from '../../parts/import-screen.tsx'
import { PasteField } from '../../parts/paste-field.tsx'
import { counted, text } from '../../text.ts'
import { readRuleRows, type ReadRows } from './rows.ts'
import { BLACKLISTED_ADDRESSES, DefaultFields, type Defaults } from './rule-fields.tsx'

const PATH = '/rules/import'
const BATCH = 500
const MAX_DELETED = 1_000
const NOTHING: ReadRows = { rows: [], bad: [] }

/** The ids of the rules that the last import has created. */
let createdIds: string[] = []

const resultOf = (skipped: number): string =>
  `Created ${counted(createdIds.length, 'rule')}. ${skipped.toLocaleString()} existed already.`

/** Imports the rows in batches. The last batch waits until the validators have applied the whole import. */
async function importAll({ rows, bad: unread }: ReadRows, report: Report): Promise<void> {
  let skipped = 0
  let applied: Applied | null = null
  createdIds = []
  const bad = [...unread]
  /** The first skipped rows. */
  const covered: BadRow[] = []
  report({ bad })
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH)
    const waits = at + BATCH >= rows.length
    const imported = await sendRows('rules', batch, async (some) => {
      const body = { rules: some.map((row) => row.body) }
      return { some, ...(await callAndApply(accessRules.importAccessRules, { body }, { waits })) }
    })
    bad.push(...imported.bad)
    if (imported.result) {
      const { some, result } = imported.result
      applied = imported.result.applied
      createdIds.push(...result.ids)
      skipped += result.skipped
      for (const { pointer } of result.skippedRows) {
        const row = some[Number(pointer.split('/')[2])]
        if (row) covered.push({ where: row.where, detail: row.body.value })
      }
    }
    report({ done: at + batch.length, bad: [...bad], covered: [...covered], summary: resultOf(skipped) })
  }
  if (createdIds.length > 0) report({ summary: liveMessage(resultOf(skipped), applied) })
}

/** Deletes the rules that the last import has created. */
async function undoImport(report: Report): Promise<void> {
  const ids = createdIds
  createdIds = []
  let deleted = 0
  let applied: Applied | null = null
  for (let at = 0; at < ids.length; at += MAX_DELETED) {
    const body = { ids: ids.slice(at, at + MAX_DELETED) }
    const waits = at + MAX_DELETED >= ids.length
    const reply = await callAndApply(accessRules.deleteAccessRules, { body }, { waits })
    deleted += reply.result.deleted
    applied = reply.applied
    report({ done: at + body.ids.length, summary: text.deletedRules(deleted) })
  }
  report({ summary: liveMessage(text.deletedRules(deleted), applied) })
}

/** Returns the rules in `content`, and reads them again when an argument changes. */
export function useRows(content: string, { kind, type, scope, scopeId }: Defaults, expiry: Expiry): ReadRows {
  const ends = timeOf(expiry)
  const fields = {
    kind,
    type,
    scope,
    ...(scope !== 'ORGANIZATION' && { scopeId }),
    ...(ends !== null && { expiresAt: ends }),
  }
  return useLatest(() => readRuleRows(content, fields), NOTHING, [content, kind, type, scope, scopeId, expiry])
}

function Form() {
  const [content, setContent] = useState('')
  const [expiry, setExpiry] = useState(NEVER)
  const [defaults, setDefaults] = useState(BLACKLISTED_ADDRESSES)
  const read = useRows(content, defaults, expiry)
  const start = useStart()
  const work = { title: 'Import of access rules', path: PATH, all: read.rows.length }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <PasteField label="Values" description={text.pasteRules} value={content} onChange={setContent} />
      <Stack>
        <DefaultFields value={defaults} onChange={setDefaults}>
          <ExpiryField value={expiry} onChange={setExpiry} />
        </DefaultFields>
        <Text role="status" fw={600}>
          {content.trim() === ''
            ? 'Paste values to see what will be imported.'
            : `${counted(read.rows.length, 'rule')} to import`}
        </Text>
        <ImportEnd
          label={`Import ${counted(read.rows.length, 'rule')}`}
          rows={read.rows.length}
          bad={read.bad}
          onStart={() => start(work, (report) => importAll(read, report))}
          back="/rules"
        />
      </Stack>
    </SimpleGrid>
  )
}

/** The buttons below the result. */
function Actions() {
  const start = useStart()
  const undo = { title: 'Deletion of the imported access rules', path: PATH, all: createdIds.length }
  return (
    <>
      <Button component={Link} href="/rules">
        Open the rules
      </Button>
      {createdIds.length > 0 && (
        <Button variant="default" onClick={() => start(undo, undoImport)}>
          Undo
        </Button>
      )}
    </>
  )
}

export default function ImportRules() {
  return <ImportScreen title="Import access rules" path={PATH} form={<Form />} actions={<Actions />} />
}
