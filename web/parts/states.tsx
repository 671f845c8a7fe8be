// What a page shows when it has nothing to show yet, or not any more.

import { ClientError } from 'legate/client'
import { type ReactNode, useState } from 'react'
import { messageOf } from '../data/client.ts'
import { isFile, pathOfFile } from '../file/answers.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Link } from './link.tsx'
import { Shape } from './state.tsx'

interface HeroProps {
  readonly icon?: IconName
  readonly title: string
  readonly children: ReactNode
}

/** A page with one thing to say. */
export function Hero({ icon, title, children }: HeroProps): ReactNode {
  return (
    <div className="scroll">
      <div className="page">
        <div className="hero">
          {icon === undefined ? <Shape state="failed" /> : <Icon name={icon} className="big-i" />}
          <h1>{title}</h1>
          {children}
        </div>
      </div>
    </div>
  )
}

interface ProblemProps {
  readonly error: unknown
  readonly title: string
  readonly onRetry?: (() => void) | undefined
}

/** What went wrong, why, what helps, and what the server said. */
export function Problem({ error, title, onRetry }: ProblemProps): ReactNode {
  return (
    <Hero title={title}>
      <p>{reasonOf(error)}</p>
      <div className="row">
        <HomeLink />
        {onRetry === undefined ? null : (
          <Button icon="retry" onClick={onRetry}>
            Try again
          </Button>
        )}
      </div>
      <ServerWords error={error} />
    </Hero>
  )
}

/** The way back: to the inbox, or to the run of a file. */
export function HomeLink(): ReactNode {
  return (
    <Link className="btn btn-primary" to={isFile ? pathOfFile() : '/'}>
      {isFile ? 'Back to the run' : 'Back to the inbox'}
    </Link>
  )
}

/** The same, inside of a page that shows other things too. */
export function ProblemNote({ error, onRetry }: Omit<ProblemProps, 'title'>): ReactNode {
  return (
    <div className="note note-failed" role="alert">
      <Shape state="failed" isDecoration />
      <span className="grow">{reasonOf(error)}</span>
      {onRetry === undefined ? null : (
        <Button isSmall onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ClientError)) return messageOf(error)
  if (error.status === 404)
    return 'It is not here, or not yours to see. An id of somebody else looks the same as one that does not exist.'
  if (error.status === 403) return `Your token does not allow this. ${error.advice ?? ''}`
  return error.advice === null ? error.message : `${error.message} ${error.advice}`
}

function ServerWords({ error }: { readonly error: unknown }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  if (!(error instanceof ClientError)) return null
  return (
    <div className="disc">
      <button type="button" className="row mid" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Chevron />
        What the server said
      </button>
      {isOpen ? <pre className="cmd">{`${error.status}  ${error.code}\n${error.message}`}</pre> : null}
    </div>
  )
}

/** The sign of a fold; it turns with `aria-expanded` of the button around it. */
export function Chevron(): ReactNode {
  return (
    <svg className="chev" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d="m6 3.5 4.5 4.5L6 12.5" />
    </svg>
  )
}

/** Grey bars in the shape of a list. */
export function SkeletonList({ label }: { readonly label: string }): ReactNode {
  return (
    <div role="status" aria-label={label} aria-busy="true" className="list sklist">
      {[2, 3, 2].map((width, at) => (
        <div key={at} className="item">
          <span className="sk sk-c" />
          <span className="skentry">
            <span className={`sk sk-${width}`} />
            <span className={`sk sk-${width + 1}`} />
          </span>
        </div>
      ))}
    </div>
  )
}

/** Grey bars in the shape of a thread. */
export function SkeletonThread(): ReactNode {
  return (
    <div className="thread" role="status" aria-label="Loading the thread" aria-busy="true">
      {[2, 4, 3].map((width) => (
        <div key={width} className="entry skentry">
          <span className="av sk" />
          <span className="sk sk-1" />
          <span className={`sk sk-${width}`} />
          <span className="sk sk-3" />
        </div>
      ))}
    </div>
  )
}

/** A page whose code is on its way. */
export function SkeletonPage(): ReactNode {
  return (
    <div className="scroll">
      <div className="page" role="status" aria-label="Loading the page" aria-busy="true">
        <span className="sk sk-h" />
        <SkeletonList label="Loading" />
      </div>
    </div>
  )
}
