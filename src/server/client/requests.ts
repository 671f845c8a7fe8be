// Methods of a client from the paths of operations.

import { type RequestForm, type RequestForms, requestFor } from '../../core/operations/wire/request.ts'
import type { QueryValues, ServerRequests } from './transport.ts'

/** Adds a method for each request. `first` gives values that come before those that a method is given. */
export function addRequests<Self>(
  to: { readonly prototype: Self },
  forms: RequestForms,
  transportOf: (self: Self) => ServerRequests,
  first: (self: Self) => readonly string[] = () => [],
): void {
  for (const [name, form] of Object.entries(forms)) {
    const value = function (this: Self, ...given: readonly unknown[]): Promise<unknown> {
      return ask(transportOf(this), form, [...first(this), ...given])
    }
    Object.defineProperty(to.prototype, name, { value, writable: true, configurable: true })
  }
}

/** Asks for an operation. What is not in the path of a request goes into its query, or its body where it has one. */
function ask(transport: ServerRequests, form: RequestForm, given: readonly unknown[]): Promise<unknown> {
  const { method, path, options } = requestFor(form, given)
  const { signal, ...rest } = options
  const isRead = method === 'GET' || method === 'DELETE'
  const parts = { method, signal, ...(isRead ? { query: rest as QueryValues } : { body: rest }) }
  return form.isText === true
    ? transport.text(path, { ...parts, headers: { accept: 'text/plain' } })
    : transport.json(path, parts)
}
