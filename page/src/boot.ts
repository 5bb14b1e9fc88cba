/** The first thing that runs. */
import "./zod-jitless.ts";
import "./app/theme.ts";
import "./main.tsx";
