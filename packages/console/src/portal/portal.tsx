/** The page on which a customer sees its licenses. The page has no state of its own besides the list that it has read. */

import { type PortalLicense, type PortalSession, portal } from '@keyward/contract/management/portal'
import { type ReactNode, useEffect, useRef, useState } from 'react'

import { ApiError, call, UnreachableError } from '../api/client.ts'
import { applyAccent } from './accent.ts'
import { LicenseCard } from './license-card.tsx'
import { RequestLink } from './request-link.tsx'

const PAGE_SIZE = 20
const MOST_OF_PAGE = 100

type View =
  | { kind: 'loading' | 'confirm' | 'used' | 'ended' | 'lost' }
  | { kind: 'open'; session: PortalSession; licenses: PortalLicense[]; cursor: string | null }

const readPage = (limit: number, cursor: string | null) => call(portal.listPortalLicenses, { query: { limit, cursor } })

/** Reads at least `count` licenses, or all. */
async function readLicenses(count: number) {
  const licenses: PortalLicense[] = []
  let cursor: string | null = null
  do {
    const limit = Math.min(MOST_OF_PAGE, count - licenses.length)
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(limit, cursor)
    licenses.push(...page.data)
    cursor = page.nextCursor
  } while (cursor !== null && licenses.length < count)
  return { licenses, cursor }
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.problem.status === 401
}

export function Portal({
  code,
  confirms,
  organizationId,
}: {
  code: string | null
  confirms: boolean
  /** The vendor of whom the customer can request a link by mail. */
  organizationId: string | null
}) {
  const [view, setView] = useState<View>({ kind: confirms ? 'confirm' : 'loading' })
  const [problem, setProblem] = useState<string | null>(null)
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)

  /** The code of a link that has not been opened. */
  const link = useRef(code)

  const open = async () => {
    setView({ kind: 'loading' })
    try {
      const session =
        link.current === null
          ? await call(portal.readPortalSession, {})
          : await call(portal.openPortalSession, { body: { code: link.current } })
      link.current = null
      applyAccent(session.vendor.accentColor)
      document.title = `Your licenses, ${session.vendor.name}`
      setView({ kind: 'open', session, ...(await readLicenses(PAGE_SIZE)) })
    } catch (error) {
      setView({ kind: !isUnauthenticated(error) ? 'lost' : link.current === null ? 'ended' : 'used' })
    }
  }
  // The component is mounted once, so a link is sent once.
  useEffect(() => {
    if (!confirms) void open()
  }, [])

  if (view.kind !== 'open')
    return <Notice kind={view.kind} organizationId={organizationId} onOpen={() => void open()} />
  const { session, licenses, cursor } = view

  /** Runs a request, and shows its error. Returns whether it succeeded. */
  const attempt = async (work: () => Promise<void>): Promise<boolean> => {
    setBusy(true)
    setProblem(null)
    try {
      await work()
      return true
    } catch (error) {
      if (isUnauthenticated(error)) setView({ kind: 'ended' })
      else if (error instanceof ApiError) setProblem(error.message)
      else if (error instanceof UnreachableError) setProblem('The connection is lost. Check it, and try again.')
      else throw error
      return false
    } finally {
      setBusy(false)
    }
  }
  const reload = async (count: number) => setView({ kind: 'open', session, ...(await readLicenses(count)) })
  const more = () =>
    attempt(async () => {
      const page = await readPage(PAGE_SIZE, cursor)
      setView({ kind: 'open', session, licenses: [...licenses, ...page.data], cursor: page.nextCursor })
      setSaid(`${licenses.length + page.data.length} licenses are shown.`)
    })
  const leave = () =>
    attempt(async () => {
      await call(portal.endPortalSession, {})
      setView({ kind: 'ended' })
    })
  const { vendor, email, preview, actions } = session
  return (
    <>
      <Header session={session} isBusy={isBusy} onLeave={() => void leave()} />
      <main id="main" className="pt-in pt-main">
        <h1>Your licenses</h1>
        {preview && (
          <Banner title="This is a preview.">
            You see the page as <bdi>{email}</bdi> sees it. Nothing can be changed here.
          </Banner>
        )}
        {problem !== null && (
          <div role="alert">
            <Banner title={problem} isProblem>
              {''}
            </Banner>
          </div>
        )}
        {licenses.length === 0 && (
          <p>
            There are no licenses for <bdi>{email}</bdi>.
          </p>
        )}
        {licenses.map((license) => (
          <LicenseCard
            key={license.id}
            license={license}
            session={session}
            attempt={attempt}
            onChanged={async (text) => {
              setSaid(text)
              await reload(licenses.length)
            }}
          />
        ))}
        {cursor !== null && (
          <button type="button" className="pt-button" onClick={() => void more()} disabled={isBusy}>
            Show more licenses
          </button>
        )}
        {actions.length === 0 && licenses.length > 0 && (
          <p className="dimmed">
            To free a slot, write to <bdi>{vendor.name}</bdi>.
          </p>
        )}
        <p role="status" className={said === '' ? 'vh' : 'pt-said'}>
          {said}
        </p>
        <footer className="sub">Licenses by Keyward</footer>
      </main>
    </>
  )
}

interface HeaderProps {
  session: PortalSession
  isBusy: boolean
  onLeave: () => void
}

function Header({ session: { vendor, email, returnUrl }, isBusy, onLeave }: HeaderProps) {
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="pt-top">
        <div className="pt-in">
          <span className="pt-avatar" aria-hidden="true">
            {vendor.name.slice(0, 1).toUpperCase()}
          </span>
          <bdi className="pt-vendor trunc">{vendor.name}</bdi>
          <span className="pt-account">
            {returnUrl !== null && (
              <a className="link" href={returnUrl} rel="noreferrer">
                Back
                <span className="hide-small">
                  {' to '}
                  <bdi>{vendor.name}</bdi>
                </span>
              </a>
            )}
            <bdi className="hide-small trunc">{email}</bdi>
            <button type="button" className="pt-button" onClick={onLeave} disabled={isBusy}>
              Leave
            </button>
          </span>
        </div>
      </header>
    </>
  )
}

function Banner({ title, isProblem, children }: { title: string; isProblem?: boolean; children: ReactNode }) {
  return (
    <div className="pt-banner" data-problem={isProblem}>
      <strong>{title}</strong> {children}
    </div>
  )
}

const NOTICES = {
  loading: ['Loading', 'The page is being loaded.'],
  confirm: ['Your licenses', 'The link works once. It stays open in this browser for 24 hours.'],
  used: ['This link does not work any more', 'A link works once, and for 15 minutes. Ask the vendor for a new one.'],
  ended: ['Your session has ended', 'To see your licenses again, open a new link of the vendor.'],
  lost: ['The connection is lost', 'The service did not respond. Check the connection, and try again.'],
} as const

const REQUEST = {
  used: ['This link does not work any more', 'A link works once, and for 15 minutes. Request a new one by mail.'],
  ended: ['Your licenses', 'To see your licenses, request a link by mail.'],
} as const

interface NoticeProps {
  kind: keyof typeof NOTICES
  organizationId: string | null
  onOpen: () => void
}

function Notice({ kind, organizationId, onOpen }: NoticeProps) {
  const isRequest = organizationId !== null && (kind === 'used' || kind === 'ended')
  const [title, sentence] = isRequest ? REQUEST[kind] : NOTICES[kind]
  const action = kind === 'confirm' ? 'Open your licenses' : kind === 'lost' ? 'Try again' : null
  return (
    <main className="pt-in pt-notice" aria-busy={kind === 'loading'}>
      <h1>{title}</h1>
      <p>{sentence}</p>
      {isRequest && <RequestLink organizationId={organizationId} />}
      {action !== null && (
        <button type="button" className="pt-button" data-primary onClick={onOpen}>
          {action}
        </button>
      )}
    </main>
  )
}
