import { type ReactNode, useId } from 'react'
import { Icon } from '../../parts/icon.tsx'
import type { Field, FieldValue } from './fields.ts'

interface FieldProps {
  readonly field: Field
  readonly entry: FieldValue
  readonly error: string | undefined
  readonly onChange: (entry: FieldValue) => void
}

/** One field of the form, with its name, its hint and what is wrong with it. */
export function FormField(props: FieldProps): ReactNode {
  const { field, entry, onChange } = props
  if (field.kind === 'flag') {
    return (
      <label className="check">
        <input type="checkbox" checked={entry === true} onChange={(event) => onChange(event.target.checked)} />
        {field.label}
        {field.hint === null ? null : <span className="dim">{field.hint}</span>}
      </label>
    )
  }
  return field.kind === 'choices' ? <ChoicesField {...props} /> : <TypedField {...props} />
}

function ChoicesField({ field, entry, error, onChange }: FieldProps): ReactNode {
  const chosen = Array.isArray(entry) ? (entry as readonly string[]) : []
  const toggle = (choice: string) =>
    onChange(chosen.includes(choice) ? chosen.filter((one) => one !== choice) : [...chosen, choice])
  return (
    <fieldset className="field">
      <legend className="name">
        {field.label}
        <Optional isShown={field.isOptional} />
      </legend>
      <div className="checks">
        {field.choices.map((choice) => (
          <label key={choice} className="check">
            <input type="checkbox" checked={chosen.includes(choice)} onChange={() => toggle(choice)} />
            {choice}
          </label>
        ))}
      </div>
      {field.hint === null ? null : <span className="hint">{field.hint}</span>}
      <Wrong error={error} />
    </fieldset>
  )
}

function TypedField({ field, entry, error, onChange }: FieldProps): ReactNode {
  const id = useId()
  const errorId = `${id}-error`
  const shared = {
    id,
    className: `in ${error === undefined ? '' : 'in-bad'} ${field.kind === 'json' ? 'mono' : ''}`,
    value: typeof entry === 'string' ? entry : '',
    'aria-invalid': error !== undefined,
    'aria-describedby': error === undefined ? undefined : errorId,
    onChange: (event: { readonly target: { readonly value: string } }) => onChange(event.target.value),
  }
  return (
    <div className="field">
      <label className="name" htmlFor={id}>
        {field.label}
        <Optional isShown={field.isOptional} />
      </label>
      <Control field={field} shared={shared} />
      {field.hint === null ? null : <span className="hint">{field.hint}</span>}
      <Wrong id={errorId} error={error} />
    </div>
  )
}

interface ControlProps {
  readonly field: Field
  readonly shared: {
    readonly id: string
    readonly className: string
    readonly value: string
    readonly onChange: (event: { readonly target: { readonly value: string } }) => void
  }
}

function Control({ field, shared }: ControlProps): ReactNode {
  if (field.kind === 'text' || field.kind === 'json')
    return <textarea {...shared} rows={3} spellCheck={field.kind === 'text'} />
  if (field.kind !== 'choice') return <input {...shared} inputMode={field.kind === 'number' ? 'decimal' : 'text'} />
  return (
    <select {...shared}>
      {field.isOptional ? <option value="">—</option> : null}
      {field.choices.map((choice) => (
        <option key={choice}>{choice}</option>
      ))}
    </select>
  )
}

function Optional({ isShown }: { readonly isShown: boolean }): ReactNode {
  return isShown ? <span className="meta">optional</span> : null
}

function Wrong({ id, error }: { readonly id?: string; readonly error: string | undefined }): ReactNode {
  if (error === undefined) return null
  return (
    <span className="err" id={id} role="alert">
      <Icon name="close" />
      {error}
    </span>
  )
}
