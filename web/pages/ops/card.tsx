import { type ReactNode, useId } from 'react'
import type { RequestState } from '../../data/request.ts'
import { ProblemNote } from '../../parts/states.tsx'

interface CardProps<Value> {
  readonly title: string
  /** Columns of twelve. */
  readonly width: 4 | 5 | 7 | 8 | 12
  readonly tools?: ReactNode
  readonly asked: RequestState<Value>
  readonly children: (value: Value) => ReactNode
}

/** A card that shows an answer of the server, or why there is none. */
export function Card<Value>({ title, width, tools, asked, children }: CardProps<Value>): ReactNode {
  const id = useId()
  return (
    <section className={`card c${width}`} aria-labelledby={id}>
      <div className="card-h">
        <h2 id={id}>{title}</h2>
        <span className="grow" />
        {tools}
      </div>
      {asked.value === undefined ? <Absent asked={asked} /> : children(asked.value)}
    </section>
  )
}

function Absent({ asked }: { readonly asked: RequestState<unknown> }): ReactNode {
  return (
    <div className="pad">
      {asked.error === null ? <span className="sk sk-3" /> : <ProblemNote error={asked.error} />}
    </div>
  )
}

interface TableProps {
  readonly label: string
  readonly heads: readonly string[]
  /** Said where there are no rows. */
  readonly empty: string
  readonly children: readonly ReactNode[]
}

/** A table that scrolls by itself. Heads that begin with `#` stand over numbers. */
export function Table({ label, heads, empty, children }: TableProps): ReactNode {
  if (children.length === 0) return <p className="pad dim">{empty}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys
    <section className="tbw" tabIndex={0} aria-label={label}>
      <table className="tb">
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col" className={head.startsWith('#') ? 'num' : undefined}>
                {head.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}
