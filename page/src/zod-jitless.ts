/** The AI SDK's zod tries `new Function` when it is loaded, which the page's Content-Security-Policy would report. */
(globalThis as { __zod_globalConfig?: { jitless: boolean } }).__zod_globalConfig = { jitless: true };

export {};
