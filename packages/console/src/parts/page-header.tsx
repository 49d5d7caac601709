/** The frame of a screen: a way back, the name of the thing, its status, facts about it, and its actions. */

import { IconChevronLeft } from '@tabler/icons-react'
import { type ReactNode, useEffect } from 'react'
import { Link } from 'wouter'

/** Announces a title to screen readers, because the browser does not announce that the screen has changed. */
const ANNOUNCER = 'announcer'

/** The live region in which the titles of screens are announced. */
export function Announcer() {
  return <div id={ANNOUNCER} className="vh" aria-live="polite" />
}

/** Sets the title of the document while a screen is shown. */
function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = title === '' ? 'Keyward' : `${title} · Keyward`
    const announcer = document.querySelector(`#${ANNOUNCER}`)
    if (announcer) announcer.textContent = document.title
  }, [title])
}

export function Screen({
  title,
  heading,
  back,
  status,
  meta,
  actions,
  width,
  children,
}: {
  /** The title in plain text, for the document. */
  title: string
  /** The heading, if it is more than the title, such as a license key. */
  heading?: ReactNode
  /** The list to which the thing belongs. */
  back?: { href: string; label: string }
  status?: ReactNode
  /** Facts in one line below the heading. */
  meta?: readonly ReactNode[]
  /** At most one primary and two other buttons. A menu contains all other actions. */
  actions?: ReactNode
  width?: 'wide' | 'middle' | 'form'
  children: ReactNode
}) {
  useDocumentTitle(title)
  return (
    <div className="page" data-width={width}>
      <header className="ph" role="presentation">
        {back && (
          <Link className="ph-crumb" href={back.href}>
            <IconChevronLeft size={14} aria-hidden="true" className="flip" />
            {back.label}
          </Link>
        )}
        <div className="ph-line">
          <h1>{heading ?? <bdi>{title}</bdi>}</h1>
          {status}
          <div className="ph-actions">{actions}</div>
        </div>
        {meta && meta.length > 0 && (
          <div className="ph-meta">
            {meta.map((one, index) => (
              <span key={index}>{one}</span>
            ))}
          </div>
        )}
      </header>
      {children}
    </div>
  )
}
