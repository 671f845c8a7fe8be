import { visible } from 'legate/client'
import { type ChangeEvent, type ReactNode, useId } from 'react'
import { argumentRows, fieldText, shownValue } from './facts.ts'

/** All arguments: nothing is cut, because somebody decides by them. */
export function Arguments({ input }: { readonly input: unknown }): ReactNode {
  const rows = argumentRows(input)
  if (rows.length === 0) return <p className="args dim">No arguments</p>
  return (
    <dl className="args">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name === '' ? 'input' : visible(name)}</dt>
          <dd>{shownValue(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

interface ArgumentFieldsProps {
  readonly input: unknown
  readonly texts: Readonly<Record<string, string>>
  /** The names of fields whose text cannot be read. */
  readonly wrong: ReadonlySet<string>
  readonly onChange: (name: string, text: string) => void
}

/** The same as fields. */
export function ArgumentFields({ input, ...rest }: ArgumentFieldsProps): ReactNode {
  return (
    <div className="args args-edit">
      {argumentRows(input).map(([name, value]) => (
        <ArgumentField key={name} name={name} value={value} {...rest} />
      ))}
    </div>
  )
}

interface ArgumentFieldProps extends Omit<ArgumentFieldsProps, 'input'> {
  readonly name: string
  readonly value: unknown
}

const LONG = 60

function ArgumentField({ name, value, texts, wrong, onChange }: ArgumentFieldProps): ReactNode {
  const id = useId()
  const text = texts[name] ?? fieldText(value)
  const isWrong = wrong.has(name)
  const shared = { id, className: `in mono ${isWrong ? 'in-bad' : ''}`, value: text, 'aria-invalid': isWrong }
  const change = (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => onChange(name, event.target.value)
  const isLong = text.length > LONG || text.includes('\n')
  return (
    <div>
      <label htmlFor={id}>{name === '' ? 'input' : visible(name)}</label>
      {isLong ? (
        <textarea {...shared} rows={Math.min(10, text.split('\n').length + 1)} onChange={change} />
      ) : (
        <input {...shared} onChange={change} />
      )}
      {isWrong ? <span className="err">This is not JSON.</span> : null}
    </div>
  )
}
