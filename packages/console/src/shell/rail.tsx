/** The rail of sections, with the organization and the search above and the validators and the account below. */

import { propagation } from '@keyward/contract/management/propagation'
import { type Me, sessions } from '@keyward/contract/management/sign-in'
import { Badge, Loader, Menu, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { IconBook, IconDots, IconSearch } from '@tabler/icons-react'
import { Link, useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { useRead } from '../api/hooks.ts'
import { forgetRecent } from '../api/recent.ts'
import { useRunningWork } from '../api/work.ts'
import { Mark } from '../parts/mark.tsx'
import { counted, text } from '../text.ts'
import { useOpenAlerts } from './open-alerts.ts'
import { currentSection, groupsOf, sectionsOf } from './sections.ts'
const FIND_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'
const REFRESH_MS = 15_000

/** Shows the progress of a task that continues in the background, as a link to its screen. */
function RunningWork() {
  const work = useRunningWork()
  if (!work) return null
  return (
    <Link href={work.path} className="nav-item">
      <Loader size={12} />
      <span className="label grow trunc">{work.title}</span>
      <span className="label">{Math.floor((100 * work.done) / Math.max(1, work.all))} %</span>
    </Link>
  )
}

/** Shows how many validators have applied all changes of the organization. */
function Health() {
  const { data, error } = useRead(propagation.readPropagation, {}, REFRESH_MS)
  if (error)
    return (
      <div className="nav-item" title={error.message}>
        <span className="health" data-state="bad" />
        <span className="label grow trunc">Validators: no answer</span>
      </div>
    )
  if (!data) return null
  const { validators, current, behindBy } = data
  const state = validators === 0 ? 'bad' : current === validators ? 'good' : 'late'
  return (
    <div
      className="nav-item"
      title={
        behindBy === 0
          ? 'Every validator has applied all changes.'
          : `The slowest validator is ${counted(behindBy, 'change')} behind.`
      }
    >
      <span className="health" data-state={state} />
      <span className="label grow trunc" role="status">
        {validators === 0 ? 'No validator is running.' : text.liveOn(current, validators)}
      </span>
    </div>
  )
}

function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '')
  return [words[0], words[1]]
    .map((word) => word?.[0] ?? '')
    .join('')
    .toUpperCase()
}

function AccountMenu({ me }: { me: Me }) {
  const [, navigate] = useLocation()
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const signOut = async () => {
    await call(sessions.signOut, {}).catch(() => undefined)
    forgetRecent()
    // Loading the page again removes all data of the former caller from memory.
    window.location.assign('/console')
  }
  const name = me.member?.email ?? me.kind.toLowerCase()
  return (
    <Menu position="top-start" width={216}>
      <Menu.Target>
        <button type="button" className="nav-item" aria-label={name}>
          <span className="avatar" data-initials={initialsOf(name)} />
          <span className="label grow trunc">{name}</span>
          <IconDots size={14} className="label" aria-hidden="true" />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => navigate('/account')}>Your account</Menu.Item>
        <Menu.Item onClick={() => setColorScheme(isDark ? 'light' : 'dark')}>
          {isDark ? 'Use the light theme' : 'Use the dark theme'}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

function Sections({ me, onNavigate }: { me: Me; onNavigate?: (() => void) | undefined }) {
  const [location] = useLocation()
  const alerts = useOpenAlerts(me)
  const current = currentSection(location, sectionsOf(me))
  return (
    <nav className="nav" aria-label="Sections">
      {groupsOf(me).map(({ title, sections }) => (
        <div key={title}>
          {title !== '' && <h2>{title}</h2>}
          {sections.map(({ path, label, icon: Icon }) => (
            <Link
              key={path}
              href={path}
              className="nav-item"
              title={label}
              aria-current={path === current ? 'page' : undefined}
              {...(onNavigate && { onClick: onNavigate })}
            >
              <Icon size={16} stroke={1.75} aria-hidden="true" />
              <span className="label">{label}</span>
              {path === '/alerts' && alerts !== '' && (
                <span className="count" aria-hidden="true">
                  {alerts}
                </span>
              )}
            </Link>
          ))}
        </div>
      ))}
    </nav>
  )
}

export function Rail({ me, onFind, onNavigate }: { me: Me; onFind: () => void; onNavigate?: () => void }) {
  return (
    <header className="rail">
      <Link href="/" className="rail-top" {...(onNavigate && { onClick: onNavigate })}>
        <Mark />
        <span className="label grow trunc">{me.organization?.name ?? 'Keyward'}</span>
        {me.organization && (
          <Badge color="gray" size="sm">
            {text.plans[me.organization.plan]}
          </Badge>
        )}
      </Link>
      <button type="button" className="rail-find" onClick={onFind}>
        <IconSearch size={14} aria-hidden="true" />
        <span className="label grow">Search or jump to…</span>
        <kbd>{FIND_KEYS}</kbd>
      </button>
      <Sections me={me} onNavigate={onNavigate} />
      <div className="rail-foot">
        <RunningWork />
        {me.organization && <Health />}
        <a href="/docs" className="nav-item" title="Docs and API">
          <IconBook size={16} stroke={1.75} aria-hidden="true" />
          <span className="label">Docs and API</span>
        </a>
        <AccountMenu me={me} />
      </div>
    </header>
  )
}
