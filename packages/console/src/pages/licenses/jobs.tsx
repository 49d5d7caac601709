/**
 * The jobs of licenses: running ones with their progress, and ended ones with their result and undo. The service performs them, so every
 * member and every tab sees them.
 */

import { licenses } from '@keyward/contract'
import { type JobReason, type LicenseJob, licenseJobs } from '@keyward/contract/management/license-jobs'
import { Alert, Button, Card, Group, List, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'

import { useCall, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { actorName } from '../../parts/actor.ts'
import { KeyText, TextLink, When } from '../../parts/parts.tsx'
import { ProgressCard } from '../../parts/progress-card.tsx'
import { counted } from '../../text.ts'

export const jobReasons: Readonly<Record<JobReason, string>> = {
  IN_EFFECT: 'the action is in effect already',
  REVOKED: 'a revocation is final',
  PERPETUAL: 'the license never expires',
  EXPIRY_PAST: 'the new end is over',
  EXPIRY_EARLIER: 'the license ends later',
  TERM_TOO_LONG: 'the term would be too long',
  DELETED: 'the license has been deleted',
  CHANGED: 'the license has changed since the action',
}
const t = {
  running: {
    suspend: 'Suspending licenses',
    reinstate: 'Reinstating licenses',
    revoke: 'Revoking licenses',
    renew: 'Renewing licenses',
    extend: 'Extending licenses',
    delete: 'Deleting licenses',
  },
  undoing: 'Restoring licenses',
  ended: {
    suspend: 'Suspended',
    reinstate: 'Reinstated',
    revoke: 'Revoked',
    renew: 'Renewed',
    extend: 'Extended',
    delete: 'Deleted',
  },
}
/** The number of jobs that are read. At most 10 of them run. */
const READ_JOBS = 20
const RUNNING_MS = 1_000
const IDLE_MS = 10_000
/** The time for which the result of a job is shown before it moves to the earlier actions. */
const RECENT_MS = 3_600_000

const isRunning = ({ endedAt }: LicenseJob) => endedAt === null

/** Whether the result of a job is that of its undo. */
const isRestored = ({ state, restored, kept }: LicenseJob) => state === 'undone' || restored + kept > 0

function resultOf(job: LicenseJob): string {
  const { state, action, total, done, changed, skipped, restored } = job
  if (isRestored(job))
    return `${state === 'canceled' ? 'Canceled the undo. ' : ''}Restored ${restored.toLocaleString()} of ${counted(changed, 'license')}.`
  const result = `${t.ended[action.type]} ${changed.toLocaleString()} of ${counted(total, 'license')}.`
  const rest = skipped > 0 ? ` In ${skipped.toLocaleString()} of them, the action was in effect already.` : ''
  return state === 'canceled' ? `Canceled after ${done.toLocaleString()}. ${result}${rest}` : `${result}${rest}`
}

/** The licenses that do not allow the action, or that the undo left as they are. */
function Problems({ job }: { job: LicenseJob }) {
  const { errors, failed, kept } = job
  const count = isRestored(job) ? kept : failed
  if (errors.length === 0) return null
  return (
    <details>
      <summary>{`${counted(count, 'license')} stayed as ${count === 1 ? 'it was' : 'they were'}`}</summary>
      <List size="sm" className="bad-rows">
        {errors.map(({ id, key, reason }) => (
          <List.Item key={id}>
            {key === null ? (
              id
            ) : (
              <TextLink href={`/licenses/${id}`}>
                <KeyText value={key} />
              </TextLink>
            )}
            {`: ${jobReasons[reason]}`}
          </List.Item>
        ))}
      </List>
      {count > errors.length && <Text size="sm">{`and ${(count - errors.length).toLocaleString()} more`}</Text>}
    </details>
  )
}

function By({ job: { actor, createdAt } }: { job: LicenseJob }) {
  return (
    <Text size="sm" c="dimmed">
      {actorName(actor)}, <When at={createdAt} />
    </Text>
  )
}

function Running({ job }: { job: LicenseJob }) {
  const may = useMay()
  const cancel = useCall(licenseJobs.cancelLicenseJob)
  const { id, action, state, total, done, changed, restored, kept, problem } = job
  const isUndo = state === 'undoing'
  const [now, all] = isUndo ? [restored + kept, changed] : [done, total]
  return (
    <ProgressCard
      title={isUndo ? t.undoing : t.running[action.type]}
      done={now}
      all={all}
      status={`${now.toLocaleString()} of ${counted(all, 'license')}`}
    >
      {problem !== null && <Alert color="yellow">{`The job waits. ${problem}`}</Alert>}
      <Group justify="space-between">
        <By job={job} />
        {may('licenses.write') && (
          <Button variant="default" loading={cancel.isPending} onClick={() => cancel.mutate({ params: { id } })}>
            Cancel
          </Button>
        )}
      </Group>
    </ProgressCard>
  )
}

function Ended({ job }: { job: LicenseJob }) {
  const may = useMay()
  const undo = useCall(licenseJobs.undoLicenseJob)
  const { id, changed, undoableUntil } = job
  const isUndoable = undoableUntil !== null && Date.parse(undoableUntil) > Date.now() && changed > 0
  return (
    <Card withBorder component="section" aria-label={resultOf(job)} p="xs">
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div>
          <Text size="sm" role="status">
            {resultOf(job)}
          </Text>
          <By job={job} />
        </div>
        {isUndoable && may('licenses.write') && (
          <Button
            variant="default"
            flex="none"
            loading={undo.isPending}
            onClick={() => undo.mutate({ params: { id } })}
          >
            Undo
          </Button>
        )}
      </Group>
      <Problems job={job} />
    </Card>
  )
}

/** Reads the lists of licenses again whenever a job has changed some. */
function useFreshLists(jobs: readonly LicenseJob[] | undefined): void {
  const queries = useQueryClient()
  const progress = jobs?.map(({ id, done, restored }) => `${id} ${done} ${restored}`).join()
  const last = useRef(progress)
  useEffect(() => {
    if (last.current !== undefined && last.current !== progress)
      void queries.invalidateQueries({ queryKey: [licenses.listLicenses.route] })
    last.current = progress
  }, [progress, queries])
}

export function Jobs() {
  const [hasEarlier, setHasEarlier] = useState(false)
  const read = useRead(licenseJobs.listLicenseJobs, { query: { limit: READ_JOBS } }, (page) =>
    page?.data.some(isRunning) === true ? RUNNING_MS : IDLE_MS,
  )
  const jobs = read.data?.data
  useFreshLists(jobs)
  if (jobs === undefined || jobs.length === 0) return null
  const isRecent = ({ endedAt }: LicenseJob) => endedAt !== null && Date.parse(endedAt) > Date.now() - RECENT_MS
  const earlier = jobs.filter((job) => !isRunning(job) && !isRecent(job))
  return (
    <Stack gap="xs">
      {jobs.filter(isRunning).map((job) => (
        <Running key={job.id} job={job} />
      ))}
      {jobs.filter(isRecent).map((job) => (
        <Ended key={job.id} job={job} />
      ))}
      {earlier.length > 0 && (
        <Group>
          <Button
            variant="subtle"
            color="gray"
            size="xs"
            onClick={() => setHasEarlier(!hasEarlier)}
            aria-expanded={hasEarlier}
          >
            {`${counted(earlier.length, 'earlier action')} on many licenses`}
          </Button>
        </Group>
      )}
      {hasEarlier && earlier.map((job) => <Ended key={job.id} job={job} />)}
    </Stack>
  )
}
