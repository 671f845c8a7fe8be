import { type ChangeEvent, type ReactNode, useId, useMemo, useState } from 'react'
import { Button } from '../../parts/button.tsx'
import { Pieces } from '../../parts/long-text.tsx'
import { exactText, exactValue } from '../../words/exact.ts'
import { type Folded, foldRows } from '../../words/fold.ts'
import { count } from '../../words/format.ts'
import { argumentRows, type FieldTexts, fieldText, rowName } from './facts.ts'

/** A call in words, and how much of it is drawn. */
export interface ShownCall extends Folded {
  /** Whether somebody who reads the page has all of it. */
  readonly isWhole: boolean
  readonly showAll: () => void
}

/** The arguments of a call, and a long request above them. A long call is drawn in part, until somebody asks for all of it. */
export function useShownCall(input: unknown, request = ''): ShownCall {
  const [allOf, setAllOf] = useState<unknown>(NOTHING)
  const rows = useMemo(() => {
    const given = argumentRows(input).map(([name, value]) => ({ name: rowName(name), text: exactValue(value) }))
    return request === '' ? given : [{ name: 'request', text: exactText(request) }, ...given]
  }, [input, request])
  const folded = useMemo(() => foldRows(rows), [rows])
  const isWhole = folded.held === null || allOf === rows
  return { rows: isWhole ? rows : folded.rows, held: folded.held, isWhole, showAll: () => setAllOf(rows) }
}

const NOTHING = Symbol('nothing')

/** Arguments that somebody reads. */
export function Arguments({ input }: { readonly input: unknown }): ReactNode {
  return <CallText call={useShownCall(input)} />
}

/** The rows of a call. Nothing is cut without saying so, because somebody decides by them. */
export function CallText({ call: { rows, held, isWhole, showAll } }: { readonly call: ShownCall }): ReactNode {
  if (rows.length === 0 && held === null) return <p className="args dim">No arguments</p>
  return (
    <div className="args">
      <dl>
        {rows.map(({ name, text }, at) => (
          <div key={`${at} ${name}`} className="args-row">
            <dt>{name}</dt>
            <dd>
              <Pieces text={text} />
            </dd>
          </div>
        ))}
      </dl>
      {held === null || isWhole ? null : (
        <p className="args-more">
          <b>{count(held.lines, 'more line')}</b>, {count(held.characters, 'character')}
          <Button isSmall onClick={showAll}>
            Show all
          </Button>
        </p>
      )}
    </div>
  )
}

interface ArgumentFieldsProps {
  readonly input: unknown
  readonly texts: FieldTexts
  /** The names of fields whose text cannot be read. */
  readonly wrong: ReadonlySet<string | null>
  readonly onChange: (name: string | null, text: string) => void
}

/** The same as fields. */
export function ArgumentFields({ input, ...rest }: ArgumentFieldsProps): ReactNode {
  return (
    <div className="args args-edit">
      {argumentRows(input).map(([name, value], at) => (
        <ArgumentField key={`${at} ${name}`} name={name} value={value} {...rest} />
      ))}
    </div>
  )
}

interface ArgumentFieldProps extends Omit<ArgumentFieldsProps, 'input'> {
  readonly name: string | null
  readonly value: unknown
}

const LONG = 60
const MOST_FIELD_LINES = 24

function ArgumentField({ name, value, texts, wrong, onChange }: ArgumentFieldProps): ReactNode {
  const id = useId()
  const text = texts.get(name) ?? fieldText(value)
  const isWrong = wrong.has(name)
  const shared = { id, className: `in mono ${isWrong ? 'in-bad' : ''}`, value: text, 'aria-invalid': isWrong }
  const change = (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => onChange(name, event.target.value)
  const isLong = text.length > LONG || text.includes('\n')
  return (
    <div className="args-row">
      <label htmlFor={id}>{rowName(name)}</label>
      {isLong ? (
        <textarea {...shared} rows={Math.min(MOST_FIELD_LINES, text.split('\n').length + 1)} onChange={change} />
      ) : (
        <input {...shared} onChange={change} />
      )}
      {isWrong ? <span className="err">This is not JSON.</span> : null}
    </div>
  )
}
