// The package of OpenTelemetry, which the program installs beside Legate. It is loaded with the first `otel()`: an import would
// fail before anything could say what to install.

import { createRequire } from 'node:module'
import type * as Package from '@opentelemetry/api'
import { DefinitionError } from '../../../index.ts'

let loaded: typeof Package | undefined

/** Gives the exports of the package. If the package is missing, the error says what to install. */
export function api(): typeof Package {
  loaded ??= load()
  return loaded
}

function load(): typeof Package {
  try {
    return createRequire(import.meta.url)('@opentelemetry/api') as typeof Package
  } catch (cause) {
    if (Reflect.get(Object(cause), 'code') !== 'MODULE_NOT_FOUND') throw cause
    throw new DefinitionError(
      'definition',
      'otel() needs the package @opentelemetry/api: npm install @opentelemetry/api',
      {
        cause,
      },
    )
  }
}
