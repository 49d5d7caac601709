import { Button, Group } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { type BadRow, useWork } from '../api/work.ts'
import { Screen } from './page-header.tsx'
import { BadRows, WorkPanel } from './work-panel.tsx'

/** Shows `form`, or the task that the screen at `path` has started. `actions` follow the result. */
export function ImportScreen({
  title,
  path,
  form,
  actions,
}: {
  title: string
  path: string
  form: ReactNode
  actions: ReactNode
}) {
  const work = useWork(path)
  return <Screen title={title}>{work === undefined ? form : <WorkPanel work={work} actions={actions} />}</Screen>
}

/** The bottom of an import form: the invalid rows and the buttons. `back` is the path to which the cancel button leads. */
export function ImportEnd({
  label,
  rows,
  bad,
  onStart,
  back,
}: {
  label: string
  /** The number of rows that can be imported. */
  rows: number
  bad: readonly BadRow[]
  onStart: () => void
  back: string
}) {
  return (
    <>
      <BadRows rows={bad} />
      <Group>
        <Button onClick={onStart} disabled={rows === 0}>
          {label}
        </Button>
        <Button variant="default" component={Link} href={back}>
          Cancel
        </Button>
      </Group>
    </>
  )
}
