"""HTTP below the routes: connections, bodies, memory limits, and the files of the page. Knows no route."""
