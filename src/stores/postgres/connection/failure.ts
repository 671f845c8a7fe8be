import { isLegateError, StoreError } from '../../../core/base/error.ts'

/** An error of the driver, as far as its fields are known. */
interface DriverError {
  readonly code?: unknown
  readonly message?: unknown
}

/** True where the connection ended, or never began: nobody knows whether the statement was run. */
export function isLost(error: unknown): boolean {
  const { code, message } = (error ?? {}) as DriverError
  if (typeof code === 'string') return LOST_CODE.test(code)
  return typeof message === 'string' && LOST_MESSAGE.test(message)
}

/** Is an error lost within one, because a library wrapped it in its own? */
export function isLostWithin(error: unknown, depth = 0): boolean {
  if (isLost(error)) return true
  if (depth > 8 || typeof error !== 'object' || error === null) return false
  const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown }
  const inner = [cause, ...(Array.isArray(errors) ? (errors as readonly unknown[]) : [])]
  return inner.some((one) => isLostWithin(one, depth + 1))
}

const LOST_CODE =
  /^(?:08|57P0[1-3]|E(?:CONN|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN)|53300|40001|40P01|26000|42P05)/
const LOST_MESSAGE = /terminated|timeout|Connection ended|not queryable|connection error/i

/** True where no answer came in time. The connection looks whole, and may be one that the other side has forgotten. */
export function isSilent(error: unknown): boolean {
  const { message } = (error ?? {}) as DriverError
  return message === 'Query read timeout'
}

/** True where a pooler gave the statement to a connection that does not know its name. Nothing was run. */
export function isNameUnknown(error: unknown): boolean {
  const { code } = (error ?? {}) as DriverError
  return code === '26000' || code === '42P05'
}

/** True where a pooler does not lead options to the server. */
export function isOptionRefused(error: unknown): boolean {
  const { message } = (error ?? {}) as DriverError
  return typeof message === 'string' && /unsupported startup parameter/i.test(message)
}

/** True where a schema, table, column or function is not there: it was dropped, or made by another version. */
export function isMissing(error: unknown): boolean {
  const { code } = (error ?? {}) as DriverError
  return typeof code === 'string' && MISSING_CODE.test(code)
}

const MISSING_CODE = /^(?:3F000|42P01|42883|42703)/

/** True where a statement has waited for a lock for as long as it may. */
export function isLockTimeout(error: unknown): boolean {
  return ((error ?? {}) as DriverError).code === '55P03'
}

/** True where the rows contradict a commit. */
export function isRefusal(error: unknown): boolean {
  const { code } = (error ?? {}) as DriverError
  return code === 'LG001' || code === 'LG002' || code === '23505'
}

interface Place {
  /** The address without its password. */
  readonly address: string
  readonly schema: string
}

type Words = (place: Place, message: string) => StoreError

const CERTIFICATE = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS_CERT)/

/** One sentence about the cause and one about the remedy, by the code of the database. */
const KNOWN: readonly (readonly [code: RegExp, words: Words])[] = [
  [
    /^ENOTFOUND/,
    ({ address }) => storeError('store', `There is no host of this name: ${address}. Check the address of the store.`),
  ],
  [
    CERTIFICATE,
    ({ address }, message) =>
      storeError(
        'store',
        `The certificate of the database at ${address} is not trusted (${message}). Name the authority that signed it: \`?sslmode=verify-full&sslrootcert=FILE\`.`,
      ),
  ],
  [
    /^28/,
    ({ address }, message) =>
      storeError(
        'store',
        /pg_hba|encryption/.test(message)
          ? `The database at ${address} does not let this user in from here (${message}). Add \`?sslmode=verify-full\` to the address, or change its pg_hba.conf.`
          : `The database at ${address} does not accept this user and password. Check the address of the store.`,
      ),
  ],
  [
    /^3D000/,
    ({ address }, message) =>
      storeError('store', `There is no such database at ${address} (${message}). Create it, or name another.`),
  ],
  [MISSING_CODE, ({ schema }) => missingSchema(schema)],
  [
    /^25006/,
    ({ address }) =>
      storeError(
        'store_readonly',
        `The database at ${address} can only be read: it is a replica, or its transactions are read only. Name the primary, or open the store with \`readOnly\`.`,
      ),
  ],
  [
    /^42501/,
    ({ address, schema }, message) =>
      storeError(
        'store_readonly',
        /for schema/.test(message)
          ? `This user may not use the schema ${schema} at ${address} (${message}). Grant it: \`GRANT USAGE ON SCHEMA ${schema} TO ...\`.`
          : `This user may not write to the schema ${schema} at ${address} (${message}). Grant it, or open the store with \`readOnly\`.`,
      ),
  ],
  [
    /^53[12]00/,
    ({ address }, message) =>
      storeError(
        'store_full',
        `The database at ${address} has no space left (${message}). Nothing was written; free some space.`,
      ),
  ],
  [
    /^53300/,
    ({ address }) =>
      storeError(
        'store_busy',
        `The database at ${address} has no connection left. Raise its max_connections, put PgBouncer in front of it, or give the store fewer connections.`,
      ),
  ],
]

/** Turns an error of the driver into one of ours. */
export function postgresFailure(error: unknown, place: Place): Error {
  if (isLegateError(error)) return error as Error
  const { code, message } = (error ?? {}) as DriverError
  const said = String(message)
  if (/does not support SSL/i.test(said)) return Object.assign(noTls(place), { cause: error })
  const known = KNOWN.find(([pattern]) => pattern.test(String(code)))
  const made = known?.[1](place, said) ?? unknownFailure(error, place, said)
  return Object.assign(made, { cause: error })
}

function noTls({ address }: Place): StoreError {
  return storeError(
    'store',
    `The database at ${address} does not speak TLS. Turn \`ssl\` on there, or leave \`sslmode\` out of the address.`,
  )
}

function unknownFailure(error: unknown, { address }: Place, message: string): StoreError {
  if (!isLost(error)) return storeError('store', `The database at ${address} says: ${message}`)
  return storeError(
    'store_busy',
    `The database at ${address} does not answer (${message}). Check that it runs and can be reached.`,
  )
}

function storeError(code: 'store' | 'store_busy' | 'store_full' | 'store_readonly', message: string): StoreError {
  return new StoreError(code, message)
}

export function missingSchema(schema: string): StoreError {
  const message = `The database has no schema ${schema} with tables of legate. Open the store once for writing, as \`legate worker\` does, or name the right schema.`
  return new StoreError('store', message, { details: { schema } })
}

export function busySchema(schema: string): StoreError {
  const message = `The schema ${schema} lacks a step, and others kept its tables in use all the time. End what reads them for long (pg_stat_activity), and open the store again.`
  return new StoreError('store_busy', message, { details: { schema } })
}
