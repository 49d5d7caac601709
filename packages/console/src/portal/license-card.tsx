import { type PortalLicense, type PortalSession, portal, portalFiles } from '@keyward/contract/management/portal'
import { parseRequestCode } from '@keyward/license-file'
import { type ReactNode, useEffect, useRef, useState } from 'react'

import { call } from '../api/client.ts'
import { save } from '../api/save.ts'
import { distance } from '../parts/distance.ts'

const SHOWN_MACHINES = 5
/** The time before the end of a license from which its card says so. */
const SOON_MS = 45 * 86_400_000

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'long' })
const dayOf = (at: string) => day.format(new Date(at))
const slots = (count: number) => `${count} ${count === 1 ? 'slot' : 'slots'}`

const TYPES = { PERPETUAL: 'License', SUBSCRIPTION: 'Subscription', TRIAL: 'Trial' } as const

function termOf({ type, expiresAt, durationDays, graceEndsAt, status }: PortalLicense): string {
  if (expiresAt === null) {
    return durationDays === null
      ? 'License without an end'
      : `${TYPES[type]} for ${durationDays} days from the first use on`
  }
  if (status === 'grace' && graceEndsAt !== null)
    return `${TYPES[type]} ended on ${dayOf(expiresAt)}. It works until ${dayOf(graceEndsAt)}.`
  return `${TYPES[type]} ${status === 'expired' ? 'ended on' : 'until'} ${dayOf(expiresAt)}`
}

/** Returns the text and the tone of the badge. */
function badgeOf({ status, expiresAt }: PortalLicense): [string, 'success' | 'warning' | 'danger'] {
  switch (status) {
    case 'active':
      return expiresAt !== null && Date.parse(expiresAt) - Date.now() < SOON_MS
        ? [`Ends ${distance(expiresAt)}`, 'warning']
        : ['Active', 'success']
    case 'grace':
      return ['Ended', 'warning']
    case 'expired':
      return ['Ended', 'danger']
    case 'suspended':
      return ['Suspended', 'warning']
    case 'revoked':
      return ['Revoked', 'danger']
    default:
      return status satisfies never
  }
}

interface CardProps {
  license: PortalLicense
  session: PortalSession
  attempt: (work: () => Promise<void>) => Promise<boolean>
  /** Announces a change, and reads the licenses again. */
  onChanged: (text: string) => Promise<void>
}

export function LicenseCard({ license, session, attempt, onChanged }: CardProps) {
  const { id, productName, used, max } = license
  const [badge, tone] = badgeOf(license)
  const [hasFile, setFile] = useState(false)
  const heading = `license-${id}`
  return (
    <article className="pt-card" aria-labelledby={heading}>
      <div className="pt-column">
        <div className="pt-row">
          <h2 id={heading} tabIndex={-1}>
            <bdi>{productName}</bdi>
          </h2>
          <span className="pt-badge" data-tone={tone}>
            {badge}
          </span>
        </div>
        <Key license={license} attempt={attempt} />
        <p className="dimmed">{termOf(license)}</p>
        {session.actions.includes('files') && (
          <button
            type="button"
            className="pt-button"
            aria-label={`Offline file of ${productName}`}
            disabled={session.preview}
            onClick={() => setFile(true)}
          >
            Offline file
          </button>
        )}
      </div>
      <div className="pt-column">
        <div className="pt-row pt-between">
          <h3>Machines</h3>
          <span className="dimmed">{max === null ? `${used} in use` : `${used} of ${max} in use`}</span>
        </div>
        <Machines license={license} session={session} attempt={attempt} onChanged={onChanged} />
      </div>
      {hasFile && (
        <FileDialog license={license} attempt={attempt} onChanged={onChanged} onClose={() => setFile(false)} />
      )}
    </article>
  )
}

/** The key, which is read when it is asked for. */
function Key({ license: { id, productName }, attempt }: Pick<CardProps, 'license' | 'attempt'>) {
  const [key, setKey] = useState<string | null>(null)
  const [isCopied, setCopied] = useState(false)
  const show = () => attempt(async () => setKey((await call(portal.readPortalKey, { params: { id } })).key))
  const copy = async (text: string) => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
  }
  if (key === null) {
    return (
      <button
        type="button"
        className="pt-button"
        aria-label={`Show the key of ${productName}`}
        onClick={() => void show()}
      >
        Show the key
      </button>
    )
  }
  return (
    <div className="pt-row">
      <span className="mono">{key}</span>
      <button type="button" className="pt-button" aria-label="Copy the key" onClick={() => void copy(key)}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

/** Returns why the customer cannot free a slot of the license, or how many it can free. */
function releaseNote({ canRelease, releasesLeft, machines }: PortalLicense, session: PortalSession): string | null {
  if (!session.actions.includes('release') || machines.length === 0) return null
  if (releasesLeft === 0) return 'No more slots can be freed now. Later, you can free one again.'
  if (!canRelease) return `Only ${session.vendor.name} can free slots of this license.`
  return releasesLeft === null ? null : `You can free ${slots(releasesLeft)} now.`
}

function Machines({ license, session, attempt, onChanged }: CardProps) {
  const { id, machines, used, max, canRelease } = license
  const [isWhole, setWhole] = useState(false)
  const [chosen, setChosen] = useState<PortalLicense['machines'][number] | null>(null)
  const mayFree = session.actions.includes('release') && canRelease
  const note = releaseNote(license, session)
  const nameOf = (hostname: string | null) => hostname ?? 'Machine without a name'
  const free = async (one: PortalLicense['machines'][number]) => {
    setChosen(null)
    await attempt(async () => {
      const { released } = await call(portal.releasePortalMachine, { params: { id }, body: { ref: one.ref } })
      await onChanged(released ? `The slot of ${nameOf(one.hostname)} is free.` : 'The slot could not be freed.')
    })
    // The button that had the focus may be gone.
    document.getElementById(`license-${id}`)?.focus()
  }
  return (
    <>
      <ul className="pt-machines">
        {(isWhole ? machines : machines.slice(0, SHOWN_MACHINES)).map((one) => (
          <li key={one.ref} className="pt-slot">
            <div className="grow">
              <bdi className="name trunc">{nameOf(one.hostname)}</bdi>
              <span className="sub">
                {one.fileEndsAt === null
                  ? `last used ${distance(one.lastSeenAt)}`
                  : `has a file until ${dayOf(one.fileEndsAt)}`}
              </span>
            </div>
            {mayFree && one.fileEndsAt === null && (
              <button
                type="button"
                className="pt-button"
                aria-label={`Free the slot of ${nameOf(one.hostname)}`}
                disabled={session.preview}
                onClick={() => setChosen(one)}
              >
                Free
              </button>
            )}
          </li>
        ))}
        {max !== null && used < max && (
          <li className="pt-slot pt-free">{`${max - used} free ${max - used === 1 ? 'slot' : 'slots'}`}</li>
        )}
      </ul>
      {!isWhole && machines.length > SHOWN_MACHINES && (
        <button type="button" className="pt-button" onClick={() => setWhole(true)}>
          {`Show all ${machines.length} machines`}
        </button>
      )}
      {used > machines.length && isWhole && <p className="sub">{`${used - machines.length} more are not listed.`}</p>}
      {note !== null && <p className="sub">{note}</p>}
      {chosen !== null && (
        <Dialog title="Free this slot?" onClose={() => setChosen(null)}>
          <p>
            <bdi className="name">{nameOf(chosen.hostname)}</bdi> stops working until it takes a slot again. Another
            machine can then use the slot.
          </p>
          <Buttons action="Free the slot" onClose={() => setChosen(null)} onAct={() => void free(chosen)} />
        </Dialog>
      )}
    </>
  )
}

interface FileProps extends Omit<CardProps, 'session'> {
  onClose: () => void
}

/** Turns the request code of a machine without a network into its file (docs/api.md#f9). */
function FileDialog({ license, attempt, onChanged, onClose }: FileProps) {
  const [code, setCode] = useState('')
  const [error, setError] = useState<string | null>(null)
  const issue = async () => {
    const request = await parseRequestCode(code)
    if (request === null) return setError('This is no complete request code. It begins with KWR1.')
    onClose()
    await attempt(async () => {
      const { machineId, hostname } = request
      const { key } = await call(portal.readPortalKey, { params: { id: license.id } })
      if (request.licenseKey !== key) return onChanged('The request code names another license.')
      const body = { machineId, ...(hostname !== undefined && { hostname }) }
      save(`license-${key}.lic`, await call(portalFiles.issuePortalFile, { params: { id: license.id }, body }))
      return onChanged('The file is in your downloads. Import it in the app on the machine.')
    })
    return undefined
  }
  return (
    <Dialog title="File for a machine without a network" onClose={onClose}>
      <label className="pt-field">
        Request code
        <span className="sub">
          The app on the machine shows it. Only this machine can use the file, and it holds a slot until the file ends.
        </span>
        <textarea
          className="mono"
          rows={4}
          value={code}
          spellCheck={false}
          aria-invalid={error !== null}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
      </label>
      {error !== null && (
        <p role="alert" className="pt-error">
          {error}
        </p>
      )}
      <Buttons action="Get the file" onClose={onClose} onAct={() => void issue()} />
    </Dialog>
  )
}

function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => ref.current?.showModal(), [])
  return (
    <dialog ref={ref} className="pt-dialog" aria-label={title} onClose={onClose}>
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}

function Buttons({ action, onClose, onAct }: { action: string; onClose: () => void; onAct: () => void }) {
  return (
    <div className="pt-row pt-end">
      <button type="button" className="pt-button" onClick={onClose}>
        Cancel
      </button>
      <button type="button" className="pt-button" data-primary onClick={onAct}>
        {action}
      </button>
    </div>
  )
}
