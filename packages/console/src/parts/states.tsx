/** The states of a screen or a card without content: loading, empty, failed, and not permitted. */

import { Alert, Button, Skeleton } from '@mantine/core'
import { IconLock, IconPlugConnectedX } from '@tabler/icons-react'
import { type ReactNode, useEffect, useState } from 'react'

import { ApiError } from '../api/client.ts'
import { Mark } from './mark.tsx'

const RETRY_SECONDS = 10

/** A centered message with a glyph, a sentence and its remedy. */
export function State({ glyph, title, children }: { glyph?: ReactNode; title?: string; children: ReactNode }) {
  return (
    <div className="state">
      <span className="state-glyph" aria-hidden="true">
        {glyph ?? <Mark />}
      </span>
      {title !== undefined && <h2>{title}</h2>}
      {children}
    </div>
  )
}

/** Rows in the layout of a table, until the first response. */
export function LoadingRows({ rows = 5 }: { rows?: number }) {
  return (
    <div className="loading-rows" aria-busy="true" aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, index) => (
        <Skeleton key={index} height={10} />
      ))}
    </div>
  )
}

/** The page of a thing, until the first response. */
export function LoadingPage() {
  return (
    <div className="page" aria-busy="true" aria-label="Loading" role="status">
      <Skeleton height={20} width={260} />
      <Skeleton height={12} width={380} />
      <div className="card">
        <LoadingRows rows={8} />
      </div>
    </div>
  )
}

/** Counts the seconds to the next attempt, and then calls `retry`. */
function useCountdown(retry: (() => void) | null): number {
  const [left, setLeft] = useState(RETRY_SECONDS)
  useEffect(() => {
    if (retry === null) return undefined
    const timer = setTimeout(() => {
      if (left > 1) setLeft(left - 1)
      else {
        setLeft(RETRY_SECONDS)
        retry()
      }
    }, 1_000)
    return () => clearTimeout(timer)
  }, [left, retry])
  return left
}

/** Shows an error with a button that tries again. A lost connection is tried again by itself. */
export function ErrorState({ error, retry }: { error: Error; retry: () => void }) {
  const isAnswer = error instanceof ApiError
  const left = useCountdown(isAnswer ? null : retry)
  const status = isAnswer ? error.problem.status : null
  if (status === 403)
    return (
      <State glyph={<IconLock size={20} />} title="You may not see this">
        <p role="alert">{`${error.message} Ask a colleague who manages members.`}</p>
      </State>
    )
  return (
    <State
      glyph={<IconPlugConnectedX size={20} />}
      title={isAnswer ? 'The action failed' : 'No connection to the service'}
    >
      <p role="alert">{error.message}</p>
      {isAnswer && error.problem.requestId !== undefined && (
        <p className="sub">{`Request ${error.problem.requestId}`}</p>
      )}
      <Button variant="default" onClick={retry}>
        {isAnswer ? 'Try again' : `Try again (in ${left} s)`}
      </Button>
    </State>
  )
}

/** Shows above rows that could not be read again, and reads them again by itself. */
export function StaleNotice({ error, retry }: { error: Error; retry: () => void }) {
  const left = useCountdown(retry)
  return (
    <div className="stale" role="alert">
      <span>{error.message} These rows may be out of date.</span>
      <Button size="xs" variant="default" onClick={retry}>
        {`Try again (in ${left} s)`}
      </Button>
    </div>
  )
}

export function ErrorMessage({ error }: { error: Error | null }) {
  if (!error) return null
  return (
    <Alert color="red" title="The action failed" role="alert">
      {error.message}
    </Alert>
  )
}
