/** Imports rules from lines of text or from a file. Lists the invalid lines and imports the others. */

import { importedAccessRules, type RuleType } from '@keyward/contract'
import { Alert, Button, FileInput, Group, List, Modal, Progress, Select, Stack, Textarea } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import { ApiError, call } from '../api/client.ts'
import { text } from '../text.ts'
import { ErrorMessage } from './parts.tsx'

const t = text.rules
const BATCH = 1_000
const MAX_SHOWN = 20

interface Line {
  number: number
  value: string
}

interface BadLine {
  number: number
  detail: string
}

interface Progressed {
  done: number
  all: number
  created: number
  skipped: number
  bad: BadLine[]
}

/** Returns the lines that contain values. Skips empty lines and lines that begin with #. */
function linesOf(content: string): Line[] {
  return content
    .split('\n')
    .map((line, index) => ({ number: index + 1, value: line.trim() }))
    .filter(({ value }) => value !== '' && !value.startsWith('#'))
}

function badLines(error: unknown, batch: readonly Line[]): BadLine[] {
  if (!(error instanceof ApiError)) return []
  return (error.problem.errors ?? []).flatMap(({ pointer, detail }) => {
    const line = batch[Number(/^#\/rules\/(\d+)/.exec(pointer)?.[1] ?? Number.NaN)]
    return line ? [{ number: line.number, detail }] : []
  })
}

/** Imports the valid lines of a batch and returns the others in `bad`. */
async function importBatch(type: RuleType, batch: readonly Line[]): Promise<Omit<Progressed, 'done' | 'all'>> {
  if (batch.length === 0) return { created: 0, skipped: 0, bad: [] }
  const rules = batch.map(({ value }) => ({ kind: 'BLACKLIST', type, value, scope: 'ORGANIZATION' }))
  try {
    const { created, skipped } = await call(
      { method: 'POST', path: '/access-rules/import', body: { rules } },
      importedAccessRules,
    )
    return { created, skipped, bad: [] }
  } catch (error) {
    const bad = badLines(error, batch)
    if (bad.length === 0) throw error
    const numbers = new Set(bad.map(({ number }) => number))
    const rest = await importBatch(
      type,
      batch.filter(({ number }) => !numbers.has(number)),
    )
    return { ...rest, bad: [...bad, ...rest.bad] }
  }
}

const TYPES = ['IP', 'HWID', 'COUNTRY'] as const

export function ImportRules({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [type, setType] = useState<RuleType>('IP')
  const [content, setContent] = useState('')
  const [progress, setProgress] = useState<Progressed | null>(null)
  const [isRunning, setIsRunning] = useState(false)
  const [error, setError] = useState<Error | null>(null)

  const run = async () => {
    const lines = linesOf(content)
    const state: Progressed = { done: 0, all: lines.length, created: 0, skipped: 0, bad: [] }
    setProgress({ ...state })
    for (let at = 0; at < lines.length; at += BATCH) {
      const batch = lines.slice(at, at + BATCH)
      const { created, skipped, bad } = await importBatch(type, batch)
      state.done = at + batch.length
      state.created += created
      state.skipped += skipped
      state.bad.push(...bad)
      setProgress({ ...state })
    }
    await queries.invalidateQueries()
  }
  const start = () => {
    setIsRunning(true)
    setError(null)
    run()
      .catch((failure: unknown) => setError(failure instanceof Error ? failure : new Error(String(failure))))
      .finally(() => setIsRunning(false))
  }
  return (
    <Modal opened onClose={onClose} title={t.importTitle} size="lg" closeButtonProps={{ 'aria-label': text.close }}>
      <Stack>
        <Select
          label={t.type}
          data={TYPES.map((value) => ({ value, label: text.types[value] }))}
          value={type}
          onChange={(value) => setType(TYPES.find((one) => one === value) ?? 'IP')}
          allowDeselect={false}
        />
        <Textarea
          label={t.importValues}
          value={content}
          onChange={(event) => setContent(event.currentTarget.value)}
          rows={8}
        />
        <FileInput
          label={t.importFile}
          accept=".txt,.csv,text/plain"
          onChange={(file) => void file?.text().then(setContent)}
        />
        {progress && (
          <>
            <Progress value={(100 * progress.done) / Math.max(1, progress.all)} aria-label={t.import} />
            <div role="status">
              {progress.done < progress.all
                ? t.importing(progress.done, progress.all)
                : t.imported(progress.created, progress.skipped)}
            </div>
            {progress.bad.length > 0 && (
              <Alert color="orange" title={t.badLines(progress.bad.length)}>
                <List size="sm">
                  {progress.bad.slice(0, MAX_SHOWN).map(({ number, detail }) => (
                    <List.Item key={`${number} ${detail}`}>{t.line(number, detail)}</List.Item>
                  ))}
                </List>
              </Alert>
            )}
          </>
        )}
        <ErrorMessage error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {text.close}
          </Button>
          <Button onClick={start} loading={isRunning} disabled={linesOf(content).length === 0}>
            {t.import}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
